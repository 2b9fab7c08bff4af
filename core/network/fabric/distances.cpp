#include "core/network/fabric/distances.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace manyworlds::core::network {

std::uint32_t weight(const Link& link) {
  return link.kind == LinkKind::scale_up ? 1 : 1'000u * link.length;
}

Distances::Distances(const Graph& graph)
    : graph_(graph),
      component_(graph.vertices.size(), kUnreachable),
      index_in_component_(component_),
      tables_(component_.size()) {
  const auto all = [](const Link&) { return true; };
  out_ = adjacency([](const Link& link) { return link.from; }, all);
  in_ = adjacency([](const Link& link) { return link.to; }, all);
  transit_ =
      adjacency([](const Link& link) { return link.from; }, [this](const Link& link) { return allows_transit(link); });
  find_components();
}

template <class End, class Keep>
Distances::Adjacency Distances::adjacency(End end, Keep keep) const {
  Adjacency result;
  result.begin.assign(graph_.vertices.size() + 1, 0);
  for (const Link& link : graph_.links)
    if (keep(link)) ++result.begin[end(link) + 1];
  for (std::size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  result.ids.resize(result.begin.back());
  std::vector<std::uint32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::uint32_t id = 0; id < graph_.links.size(); ++id)
    if (keep(graph_.links[id])) result.ids[next[end(graph_.links[id])]++] = id;
  return result;
}

void Distances::find_components() {
  for (std::uint32_t first = 0; first < component_.size(); ++first) {
    if (!forwards(first) || component_[first] != kUnreachable) continue;
    const auto component = static_cast<std::uint32_t>(component_members_.size());
    std::vector<std::uint32_t>& members = component_members_.emplace_back(1, first);
    component_[first] = component;
    const auto add = [&](std::uint32_t vertex) {
      if (!forwards(vertex) || component_[vertex] != kUnreachable) return;
      component_[vertex] = component;
      members.push_back(vertex);
    };
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint32_t vertex = members[i];
      index_in_component_[vertex] = static_cast<std::uint32_t>(i);
      for (const std::uint32_t id : transit_links(vertex)) add(graph_.links[id].to);
      for (const std::uint32_t id : in(vertex)) add(graph_.links[id].from);
    }
  }
}

/// Runs Dijkstra's algorithm backwards from a forwarding vertex, over its connected component.
const std::vector<std::uint32_t>& Distances::table_of(std::uint32_t vertex) {
  std::vector<std::uint32_t>& table = tables_[vertex];
  if (!table.empty()) return table;
  table.assign(component_members_[component_[vertex]].size(), kUnreachable);
  using Item = std::pair<std::uint32_t, std::uint32_t>;  // (distance, vertex)
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  table[index_in_component_[vertex]] = 0;
  open.emplace(0, vertex);
  while (!open.empty()) {
    const auto [distance, at] = open.top();
    open.pop();
    if (distance != table[index_in_component_[at]]) continue;
    for (const std::uint32_t id : in(at)) {
      const Link& link = graph_.links[id];
      if (!forwards(link.from) || !allows_transit(link)) continue;
      const std::uint32_t new_distance = distance + weight(link);
      if (new_distance >= table[index_in_component_[link.from]]) continue;
      table[index_in_component_[link.from]] = new_distance;
      open.emplace(new_distance, link.from);
    }
  }
  return table;
}

void Distances::set_destination(std::uint32_t dst) {
  if (dst == dst_) return;
  dst_ = dst;
  entrances_.clear();
  const auto enter = [&](std::uint32_t vertex, std::uint32_t at_weight) {
    entrances_.push_back({component_[vertex], at_weight, table_of(vertex).data()});
  };
  if (graph_.vertices[dst] != VertexKind::gpu) return enter(dst, 0);
  for (const std::uint32_t id : in(dst))
    if (forwards(graph_.links[id].from)) enter(graph_.links[id].from, weight(graph_.links[id]));
}

std::uint32_t Distances::from(std::uint32_t vertex) const {
  if (vertex == dst_) return 0;
  std::uint32_t min_distance = kUnreachable;
  if (!forwards(vertex)) {
    for (const std::uint32_t id : out(vertex)) {
      const Link& link = graph_.links[id];
      if (link.to != dst_ && !allows_transit(link)) continue;
      const std::uint32_t rest = from(link.to);
      if (rest != kUnreachable) min_distance = std::min(min_distance, rest + weight(link));
    }
    return min_distance;
  }
  for (const Entrance& entrance : entrances_) {
    if (entrance.component != component_[vertex]) continue;
    const std::uint32_t rest = entrance.table[index_in_component_[vertex]];
    if (rest != kUnreachable) min_distance = std::min(min_distance, rest + entrance.weight);
  }
  return min_distance;
}

}  // namespace manyworlds::core::network
