// CUDA's functions of graphs, however they are made, and of those that are captured of streams: what is given to a
// captured stream is recorded as ever, and is part of the graph by the lines where its capture begins and ends. After
// the CUDA Runtime API (graph management).
#include <algorithm>
#include <optional>
#include <queue>

#include "experiments/capture/session.hpp"
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {
namespace {

Graph* graph_of(void* handle) {
  Graph* graph = static_cast<Graph*>(handle);
  return session().graphs.contains(graph) ? graph : nullptr;
}

/// The nodes, each behind those that it waits for: of those that can be next, that with the least number. Nothing if
/// some wait for each other.
std::optional<std::vector<int>> issue_order(const Graph& graph) {
  std::vector<std::vector<int>> next(graph.nodes.size());
  std::vector<std::size_t> waits(graph.nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (const auto& node : graph.nodes) {
    waits[static_cast<std::size_t>(node->number)] = node->after.size();
    for (const int before : node->after) next[static_cast<std::size_t>(before)].push_back(node->number);
    if (node->after.empty()) ready.push(node->number);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int after : next[static_cast<std::size_t>(order.back())])
      if (--waits[static_cast<std::size_t>(after)] == 0) ready.push(after);
  }
  return order.size() == graph.nodes.size() ? std::optional(order) : std::nullopt;
}

/// Gives an instance what its graph has now.
void take_nodes(Graph& instance, const Graph& graph, const std::vector<int>& order) {
  instance.number = graph.number;
  instance.nodes.clear();
  for (const auto& node : graph.nodes) instance.nodes.push_back(std::make_shared<const GraphNode>(*node));
  instance.effects = std::make_shared<std::vector<std::function<void()>>>();
  for (const int number : order)
    if (const auto& effect = graph.nodes[static_cast<std::size_t>(number)]->effect) instance.effects->push_back(effect);
}

/// Whether nodes of the same kinds wait for each other alike. What is in graphs that are captured is not known here.
bool have_one_topology(const Graph& one, const Graph& other) {
  const auto are_alike = [](const auto& a, const auto& b) {
    return a->is_kernel == b->is_kernel && a->after == b->after;
  };
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), other.nodes.end(), are_alike);
}

/// Nodes of an instance are those that the graph has now.
Error instantiate(const char* call, void** out, void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  const Graph* graph = graph_of(handle);
  if (out == nullptr || graph == nullptr || graph->instance >= 0) return recorded(line, kInvalidValue);
  line.number("graph", graph->number);
  const std::optional<std::vector<int>> order = issue_order(*graph);
  if (!order) return recorded(line, kInvalidValue);
  Graph* instance = new Graph{graph->number, of.next_instance++, graph->is_captured, {}, {}};
  take_nodes(*instance, *graph, *order);
  of.graphs.insert(instance);
  *out = instance;
  return recorded(line.number("instance", instance->instance));
}

Error destroy(const char* call, void* handle) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Graph* graph = graph_of(handle);
  if (graph == nullptr) return recorded(Line(call), kInvalidValue);
  Line line(call);
  line.number("graph", graph->number);
  if (graph->instance >= 0) {
    line.number("instance", graph->instance);
  } else {
    for (const auto& node : graph->nodes) of.nodes.erase(node.get());
  }
  of.graphs.erase(graph);
  delete graph;
  return recorded(line);
}

/// Calls of an instance on a stream. `effects` gets what the host sees of a launch.
Error on_stream(const char* call, void* handle, void* stream,
                std::shared_ptr<std::vector<std::function<void()>>>* effects = nullptr) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  const Graph* graph = graph_of(handle);
  if (graph == nullptr || graph->instance < 0) return recorded(line, kInvalidValue);
  const int number = stream_number(stream);
  line.number("graph", graph->number).number("instance", graph->instance).number("stream", number);
  if (number < 0) return recorded(line, kInvalidHandle);
  if (effects != nullptr) *effects = graph->effects;
  return recorded(line);
}

}  // namespace

Error get_capture_info(const char* call, void* handle, int* status, unsigned long long* id, bool asks_for_nodes) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(handle);
  const Line line = Line("cudaStreamGetCaptureInfo").number("stream", number);
  if (number < 0 || status == nullptr) return recorded(line, number < 0 ? kInvalidHandle : kInvalidValue);
  const int graph = number < 2 ? -1 : static_cast<Stream*>(handle)->graph;
  *status = graph >= 0 ? 1 : 0;
  if (graph >= 0 && asks_for_nodes)
    end_capture(std::string(call) + " of a captured stream: its graph and nodes are not modelled");
  if (id != nullptr && graph >= 0) *id = static_cast<unsigned long long>(graph) + 1;
  return recorded(line);
}

extern "C" {

Error cudaStreamBeginCapture(void* handle, int) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const int number = stream_number(handle);
  Line line = Line("cudaStreamBeginCapture").number("stream", number);
  if (number < 0) return recorded(line, kInvalidHandle);
  if (number < 2) return recorded(line, kNotForLegacyStream);
  Stream& stream = *static_cast<Stream*>(handle);
  if (stream.graph >= 0) return recorded(line, kIllegalState);
  stream.graph = of.next_graph++;
  return recorded(line.number("graph", stream.graph));
}

Error cudaStreamEndCapture(void* handle, void** out) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const int number = stream_number(handle);
  Line line = Line("cudaStreamEndCapture").number("stream", number);
  if (number < 2 || out == nullptr) return recorded(line, number < 0 ? kInvalidHandle : kInvalidValue);
  const int graph = static_cast<Stream*>(handle)->graph;
  if (graph < 0) return recorded(line, kIllegalState);
  for (Stream* stream : of.streams)
    if (stream->graph == graph) stream->graph = -1;
  for (Event* event : of.events)
    if (event->graph == graph) event->graph = -1;
  Graph* fresh = new Graph{graph, -1, true, {}, {}};
  of.graphs.insert(fresh);
  *out = fresh;
  return recorded(line.number("graph", graph));
}

/// cudaStreamCaptureStatus: 0 none, 1 active.
Error cudaStreamIsCapturing(void* handle, int* out) {
  const std::lock_guard lock(session().mutex);
  const int number = stream_number(handle);
  if (number < 0 || out == nullptr) return recorded(Line("cudaStreamIsCapturing"), kInvalidHandle);
  *out = number >= 2 && static_cast<Stream*>(handle)->graph >= 0 ? 1 : 0;
  return recorded(Line("cudaStreamIsCapturing").number("stream", number));
}

Error cudaGraphInstantiate(void** out, void* graph, unsigned long long) {
  return instantiate("cudaGraphInstantiate", out, graph);
}
Error cudaGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  return instantiate("cudaGraphInstantiate", out, graph);
}
/// What the host sees of it is there at once, as work is done when it is issued.
Error cudaGraphLaunch(void* instance, void* stream) {
  std::shared_ptr<std::vector<std::function<void()>>> effects;
  const Error error = on_stream("cudaGraphLaunch", instance, stream, &effects);
  if (effects != nullptr)
    for (const std::function<void()>& effect : *effects) effect();
  return error;
}
/// The instance is then one of the other graph.
Error cudaGraphExecUpdate(void* handle, void* from, GraphUpdate* out) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaGraphExecUpdate");
  Graph* instance = graph_of(handle);
  const Graph* graph = graph_of(from);
  if (instance == nullptr || graph == nullptr || out == nullptr || instance->instance < 0 || graph->instance >= 0)
    return recorded(line, kInvalidValue);
  if (instance->is_captured != graph->is_captured)
    end_capture("cudaGraphExecUpdate of a graph that was captured by one that was made node by node is not modelled");
  line.number("graph", graph->number).number("instance", instance->instance);
  const std::optional<std::vector<int>> order = issue_order(*graph);
  const bool can_be = order.has_value() && have_one_topology(*instance, *graph);
  *out = {can_be ? kUpdated : kOtherTopology, nullptr, nullptr};
  if (!can_be) return recorded(line, kGraphUpdateFailed);
  take_nodes(*instance, *graph, *order);
  return recorded(line);
}
Error cudaGraphUpload(void* instance, void* stream) {
  return on_stream("cudaGraphUpload", instance, stream);
}
Error cudaGraphDestroy(void* graph) {
  return destroy("cudaGraphDestroy", graph);
}
Error cudaGraphExecDestroy(void* instance) {
  return destroy("cudaGraphExecDestroy", instance);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
