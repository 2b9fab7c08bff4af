#include "core/network/fabric/distances.hpp"

#include <algorithm>

namespace manyworlds::core::network {

namespace {

constexpr std::uint32_t kNetworkWeight = 1'000;

}  // namespace

std::uint32_t weight(const Link& link) {
  return link.kind == LinkKind::scale_up ? 1 : kNetworkWeight * link.length;
}

Distances::Distances(const Graph& graph, DistanceMethod method)
    : graph_(graph),
      out_(adjacency([](const Link& link) { return link.from; }, [](const Link&) { return true; })),
      in_(adjacency([](const Link& link) { return link.to; }, [](const Link&) { return true; })),
      transit_(adjacency([](const Link& link) { return link.from; },
                         [this](const Link& link) { return allows_transit(link); })),
      grid_(graph),
      on_grid_(method == DistanceMethod::structure &&
               grid_.is_built_of(links_between_forwarding(false), kNetworkWeight)),
      classes_(graph.vertices.size(), links_between_forwarding(on_grid_), method == DistanceMethod::structure),
      min_transit_weight_(graph.vertices.size(), kUnreachable / 2) {
  for (const Link& link : graph.links)
    if (allows_transit(link)) min_transit_weight_[link.from] = std::min(min_transit_weight_[link.from], weight(link));
}

/// Returns the links between vertices that forward packets, over which transit traffic may pass; those of the grid can
/// be left out.
std::vector<TransitLink> Distances::links_between_forwarding(bool without_grid) const {
  std::vector<TransitLink> result;
  for (const Link& link : graph_.links)
    if (forwards(link.from) && forwards(link.to) && allows_transit(link) &&
        !(without_grid && grid_.contains(link.from)))
      result.push_back({link.from, link.to, weight(link)});
  return result;
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

void Distances::set_destination(std::uint32_t dst) {
  if (dst == dst_) return;
  dst_ = dst;
  entrances_.clear();
  min_last_weight_ = kUnreachable / 2;
  const auto enter = [&](std::uint32_t vertex, std::uint32_t at_weight) {
    const bool on_grid = on_grid_ && grid_.contains(vertex);
    entrances_.push_back({vertex, at_weight, on_grid ? nullptr : &classes_.to(classes_.class_of(vertex))});
  };
  for (const std::uint32_t id : in(dst)) min_last_weight_ = std::min(min_last_weight_, weight(graph_.links[id]));
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
    const std::uint32_t rest = between(vertex, entrance);
    if (rest != kUnreachable) min_distance = std::min(min_distance, rest + entrance.weight);
  }
  return min_distance;
}

std::uint32_t Distances::between(std::uint32_t vertex, const Entrance& entrance) const {
  if (vertex == entrance.vertex) return 0;
  if (entrance.table != nullptr) return entrance.table->from(classes_.class_of(vertex));
  return grid_.contains(vertex) ? kNetworkWeight * grid_.hops(vertex, entrance.vertex) : kUnreachable;
}

}  // namespace manyworlds::core::network
