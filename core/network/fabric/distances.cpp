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
    : graph_(graph), island_(graph.vertices.size(), kUnreachable), place_(island_), tables_(island_.size()) {
  const auto all = [](const Link&) { return true; };
  out_ = adjacency([](const Link& link) { return link.from; }, all);
  in_ = adjacency([](const Link& link) { return link.to; }, all);
  onward_ = adjacency([](const Link& link) { return link.from; }, [this](const Link& link) { return passes(link); });
  find_islands();
}

template <class End, class Keep>
Distances::Adjacency Distances::adjacency(End end, Keep keep) const {
  Adjacency made;
  made.begin.assign(graph_.vertices.size() + 1, 0);
  for (const Link& link : graph_.links)
    if (keep(link)) ++made.begin[end(link) + 1];
  for (std::size_t i = 1; i < made.begin.size(); ++i) made.begin[i] += made.begin[i - 1];
  made.ids.resize(made.begin.back());
  std::vector<std::uint32_t> next(made.begin.begin(), made.begin.end() - 1);
  for (std::uint32_t id = 0; id < graph_.links.size(); ++id)
    if (keep(graph_.links[id])) made.ids[next[end(graph_.links[id])]++] = id;
  return made;
}

void Distances::find_islands() {
  for (std::uint32_t first = 0; first < island_.size(); ++first) {
    if (!forwards(first) || island_[first] != kUnreachable) continue;
    const auto island = static_cast<std::uint32_t>(members_.size());
    std::vector<std::uint32_t>& members = members_.emplace_back(1, first);
    island_[first] = island;
    const auto add = [&](std::uint32_t vertex) {
      if (!forwards(vertex) || island_[vertex] != kUnreachable) return;
      island_[vertex] = island;
      members.push_back(vertex);
    };
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint32_t vertex = members[i];
      place_[vertex] = static_cast<std::uint32_t>(i);
      for (const std::uint32_t id : onward(vertex)) add(graph_.links[id].to);
      for (const std::uint32_t id : in(vertex)) add(graph_.links[id].from);
    }
  }
}

/// Dijkstra from a forwarding vertex, backwards, over its island.
const std::vector<std::uint32_t>& Distances::table_of(std::uint32_t vertex) {
  std::vector<std::uint32_t>& table = tables_[vertex];
  if (!table.empty()) return table;
  table.assign(members_[island_[vertex]].size(), kUnreachable);
  using Item = std::pair<std::uint32_t, std::uint32_t>;  // (distance, vertex)
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  table[place_[vertex]] = 0;
  open.emplace(0, vertex);
  while (!open.empty()) {
    const auto [far, at] = open.top();
    open.pop();
    if (far != table[place_[at]]) continue;
    for (const std::uint32_t id : in(at)) {
      const Link& link = graph_.links[id];
      if (!forwards(link.from) || !passes(link)) continue;
      const std::uint32_t farther = far + weight(link);
      if (farther >= table[place_[link.from]]) continue;
      table[place_[link.from]] = farther;
      open.emplace(farther, link.from);
    }
  }
  return table;
}

void Distances::aim_at(std::uint32_t dst) {
  if (dst == dst_) return;
  dst_ = dst;
  entrances_.clear();
  const auto enter = [&](std::uint32_t vertex, std::uint32_t at_weight) {
    entrances_.push_back({island_[vertex], at_weight, table_of(vertex).data()});
  };
  if (graph_.vertices[dst] != VertexKind::gpu) return enter(dst, 0);
  for (const std::uint32_t id : in(dst))
    if (forwards(graph_.links[id].from)) enter(graph_.links[id].from, weight(graph_.links[id]));
}

std::uint32_t Distances::from(std::uint32_t vertex) const {
  if (vertex == dst_) return 0;
  std::uint32_t least = kUnreachable;
  if (!forwards(vertex)) {
    for (const std::uint32_t id : out(vertex)) {
      const Link& link = graph_.links[id];
      if (link.to != dst_ && !passes(link)) continue;
      const std::uint32_t rest = from(link.to);
      if (rest != kUnreachable) least = std::min(least, rest + weight(link));
    }
    return least;
  }
  for (const Entrance& entrance : entrances_) {
    if (entrance.island != island_[vertex]) continue;
    const std::uint32_t rest = entrance.table[place_[vertex]];
    if (rest != kUnreachable) least = std::min(least, rest + entrance.weight);
  }
  return least;
}

}  // namespace manyworlds::core::network
