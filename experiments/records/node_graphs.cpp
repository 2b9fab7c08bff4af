#include "experiments/records/node_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using Numbers = NodeGraphs::Numbers;

constexpr std::int32_t kMaxNumbers = 1 << 30;  // of streams and events of instances

std::size_t index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

void check_nodes(const Numbers& nodes, std::size_t count, std::int32_t graph) {
  for (const std::int32_t node : nodes)
    if (node < 0 || index(node) >= count) throw InputError(fmt::format("graph {} has no node {}", graph, node));
}

void wait_for(Numbers& after, std::int32_t node) {
  if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
}

/// Each node behind those that it waits for: of those that can be next, that with the least number.
Numbers issue_order(const std::vector<Numbers>& after) {
  std::vector<Numbers> next(after.size());
  std::vector<std::size_t> waits(after.size());
  std::priority_queue<std::int32_t, Numbers, std::greater<>> ready;
  for (std::size_t node = 0; node < after.size(); ++node) {
    waits[node] = after[node].size();
    for (const std::int32_t before : after[node]) next[index(before)].push_back(static_cast<std::int32_t>(node));
    if (after[node].empty()) ready.push(static_cast<std::int32_t>(node));
  }
  Numbers order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::int32_t node : next[index(order.back())])
      if (--waits[index(node)] == 0) ready.push(node);
  }
  return order;
}

}  // namespace

NodeGraphs::Graph& NodeGraphs::graph_of(std::int32_t graph) {
  const auto known = graphs_.find(graph);
  if (known == graphs_.end()) throw InputError(fmt::format("graph {} was not created before", graph));
  return known->second;
}

const NodeGraphs::Instance& NodeGraphs::instance_of(std::int32_t instance) const {
  const auto known = instances_.find(instance);
  if (known == instances_.end()) throw InputError(fmt::format("instance {} of a graph was not made before", instance));
  return known->second;
}

NodeGraphs::Instance& NodeGraphs::instance_of(std::int32_t instance) {
  return const_cast<Instance&>(std::as_const(*this).instance_of(instance));
}

void NodeGraphs::create(std::int32_t graph) {
  if (!graphs_.try_emplace(graph).second) throw InputError(fmt::format("graph {} was created before", graph));
}

void NodeGraphs::add(std::int32_t graph, std::int32_t node, const Numbers& after, const Call& call) {
  Graph& to = graph_of(graph);
  if (node < 0 || index(node) != to.nodes.size())
    throw InputError(fmt::format("nodes are numbered from 0 in the order in which they are added: this is {}, not {}",
                                 to.nodes.size(), node));
  check_nodes(after, to.nodes.size(), graph);
  to.nodes.push_back(call);
  Numbers& waits = to.after.emplace_back();
  for (const std::int32_t before : after) wait_for(waits, before);
}

void NodeGraphs::add_dependencies(std::int32_t graph, const Numbers& from, const Numbers& to) {
  Graph& of = graph_of(graph);
  check_nodes(from, of.nodes.size(), graph);
  check_nodes(to, of.nodes.size(), graph);
  if (from.size() != to.size()) throw InputError("'from' and 'to' must have as many nodes");
  for (std::size_t i = 0; i < to.size(); ++i) wait_for(of.after[index(to[i])], from[i]);
}

void NodeGraphs::set_node(std::int32_t graph, std::int32_t node, const Call& call) {
  Graph& of = graph_of(graph);
  check_nodes({node}, of.nodes.size(), graph);
  of.nodes[index(node)] = call;
}

void NodeGraphs::instantiate(std::int32_t graph, std::int32_t instance) {
  const auto [known, is_new] = instances_.try_emplace(instance);
  if (!is_new) throw InputError(fmt::format("instance {} of a graph was made before", instance));
  Instance& of = known->second;
  of.graph = graph_of(graph);
  of.places = places_of(of.graph);
  if (of.places.order.size() < of.graph.nodes.size())
    throw InputError(fmt::format("nodes of graph {} wait for each other", graph));
  const auto nodes = static_cast<std::int32_t>(of.graph.nodes.size());
  if (next_event_ > kMaxNumbers - nodes - 2) throw InputError("is an instance too much: there are 1e9 nodes of them");
  of.first_stream = next_stream_, of.first_event = next_event_;
  next_stream_ += nodes, next_event_ += nodes + 2;
}

void NodeGraphs::update(std::int32_t instance, std::int32_t graph) {
  Instance& of = instance_of(instance);
  const Graph& with = graph_of(graph);
  if (of.graph.after != with.after)
    throw InputError(
        fmt::format("nodes of graph {} do not wait for each other as those of instance {}", graph, instance));
  of.graph = with;
}

void NodeGraphs::set_node_of_instance(std::int32_t instance, std::int32_t node, const Call& call) {
  Graph& of = instance_of(instance).graph;
  if (node < 0 || index(node) >= of.nodes.size())
    throw InputError(fmt::format("instance {} of a graph has no node {}", instance, node));
  of.nodes[index(node)] = call;
}

NodeGraphs::Places NodeGraphs::places_of(const Graph& graph) {
  Places places{issue_order(graph.after), Numbers(graph.nodes.size()), {}, std::vector<bool>(graph.nodes.size())};
  for (const std::int32_t node : places.order) {
    const Numbers& after = graph.after[index(node)];
    std::int32_t stream = kNone;
    for (const std::int32_t before : after) {  // goes on where the last node is one that it waits for
      const std::int32_t of = places.stream[index(before)];
      if (places.last_of_stream[index(of)] == before && (stream == kNone || of < stream)) stream = of;
    }
    if (stream == kNone) {
      stream = static_cast<std::int32_t>(places.last_of_stream.size());
      places.last_of_stream.push_back(node);
    }
    places.stream[index(node)] = stream;
    places.last_of_stream[index(stream)] = node;
    for (const std::int32_t before : after)
      if (places.stream[index(before)] != stream) places.is_awaited[index(before)] = true;
  }
  for (std::size_t stream = 1; stream < places.last_of_stream.size(); ++stream)
    places.is_awaited[index(places.last_of_stream[stream])] = true;
  return places;
}

void NodeGraphs::launch(std::int32_t number, const Call& launch, std::vector<Call>& to) const {
  const Instance& instance = instance_of(number);
  const Places& places = instance.places;
  const std::int32_t begin = instance.first_event, end = begin + 1, first_node = begin + 2;
  const auto stream_of = [&](std::int32_t stream) {
    return stream == 0 ? launch.stream : instance.first_stream + stream;
  };
  const auto add = [&](Call call, std::int32_t stream) {
    call.is_of_graph = true;
    call.line = launch.line, call.thread = launch.thread, call.stream = stream;
    to.push_back(call);
  };
  const auto add_event = [&](CallKind kind, std::int32_t event, std::int32_t stream) {
    Call call;
    call.kind = kind, call.number = event;
    call.form = static_cast<std::uint64_t>(kind) + 1;
    add(call, stream);
  };
  add_event(CallKind::wait_event, end, launch.stream);
  if (places.last_of_stream.size() > 1) add_event(CallKind::record_event, begin, launch.stream);
  for (const std::int32_t node : places.order) {
    const std::int32_t place = places.stream[index(node)], stream = stream_of(place);
    const Numbers& after = instance.graph.after[index(node)];
    if (after.empty() && place != 0) add_event(CallKind::wait_event, begin, stream);
    for (const std::int32_t before : after)
      if (places.stream[index(before)] != place) add_event(CallKind::wait_event, first_node + before, stream);
    const Call& call = instance.graph.nodes[index(node)];
    if (call.kind != CallKind::other) add(call, stream);
    if (places.is_awaited[index(node)]) add_event(CallKind::record_event, first_node + node, stream);
  }
  for (std::size_t place = 1; place < places.last_of_stream.size(); ++place)
    add_event(CallKind::wait_event, first_node + places.last_of_stream[place], launch.stream);
  add_event(CallKind::record_event, end, launch.stream);
}

std::uint64_t NodeGraphs::form_of(std::int32_t instance) const {
  std::uint64_t form = 0;
  const auto add = [&](std::uint64_t value) { form = (form ^ value) * 0x9e3779b97f4a7c15u + 1; };
  const Graph& graph = instance_of(instance).graph;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    add(graph.nodes[node].form);
    for (const std::int32_t before : graph.after[node]) add(static_cast<std::uint64_t>(before));
  }
  return form;
}

}  // namespace manyworlds::experiments::captured
