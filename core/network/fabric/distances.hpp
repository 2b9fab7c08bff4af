// Shortest-path distances from every vertex of a graph to a GPU. GPUs forward nothing, so every path to a GPU ends at a
// switch that it is cabled to (or at the source itself). GPUs behind one switch share that switch's distance table, so
// the number of tables grows with the switches, not with the GPUs. Where GPUs relay (Graph::gpus_relay), they are
// treated as switches that can be entered only over scale-up links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// Returns the cost of a link in a path: 1 for a scale-up link, 1,000 times its length for a network link, so that a
/// scale-up hop is always preferred over leaving the node.
std::uint32_t weight(const Link& link);

class Distances {
 public:
  static constexpr std::uint32_t kUnreachable = UINT32_MAX;

  /// `graph` must outlive this object.
  explicit Distances(const Graph& graph);
  Distances(const Distances&) = delete;
  Distances& operator=(const Distances&) = delete;

  /// Ids of the links that leave or enter a vertex, ascending.
  std::span<const std::uint32_t> out(std::uint32_t vertex) const { return out_.links_of(vertex); }
  std::span<const std::uint32_t> in(std::uint32_t vertex) const { return in_.links_of(vertex); }
  /// The links of out(vertex) over which transit traffic may pass, because their far end forwards packets.
  std::span<const std::uint32_t> transit_links(std::uint32_t vertex) const { return transit_.links_of(vertex); }

  /// Sets the destination of from() and computes the distance tables that it needs and that are missing. Not
  /// thread-safe.
  void set_destination(std::uint32_t dst);
  /// Returns the minimum sum of weights from `vertex` to the destination, with no more transit through GPUs than the
  /// graph allows, or kUnreachable.
  std::uint32_t from(std::uint32_t vertex) const;
  /// Sets `links` to the links out of `vertex` that begin a shortest path to the destination, by ascending id: of
  /// those, the ones with the minimum Link::order. distance_of(v) is from(v), or a copy of it; it is asked for `vertex`
  /// and for vertices that forward packets.
  template <class DistanceFn>
  void find_next_hops(std::uint32_t vertex, const DistanceFn& distance_of, std::vector<std::uint32_t>& links) const;

 private:
  struct Adjacency {  // compressed rows: vertex v has the link ids in ids[begin[v], begin[v + 1])
    std::vector<std::uint32_t> begin, ids;
    std::span<const std::uint32_t> links_of(std::uint32_t vertex) const {
      return {ids.data() + begin[vertex], ids.data() + begin[vertex + 1]};
    }
  };
  struct Entrance {  // a forwarding neighbour of the destination: its distance table, and the weight of the last link
    std::uint32_t component, weight;
    const std::uint32_t* table;
  };

  template <class End, class Keep>
  Adjacency adjacency(End end, Keep keep) const;
  void find_components();
  const std::vector<std::uint32_t>& table_of(std::uint32_t vertex);
  bool forwards(std::uint32_t vertex) const { return graph_.gpus_relay || graph_.vertices[vertex] != VertexKind::gpu; }
  /// Returns whether transit traffic may cross this link: whether its far end forwards packets that arrive over it.
  bool allows_transit(const Link& link) const {
    return graph_.vertices[link.to] != VertexKind::gpu || (graph_.gpus_relay && link.kind == LinkKind::scale_up);
  }

  const Graph& graph_;
  Adjacency out_, in_, transit_;
  // Connected components of the forwarding vertices. The scale-up switch of a node is often a component by itself.
  std::vector<std::uint32_t> component_, index_in_component_;  // by vertex: its component, and its index within it
  std::vector<std::vector<std::uint32_t>> component_members_;  // by component: its vertices, by index
  std::vector<std::vector<std::uint32_t>> tables_;  // by vertex: distances to it within its component; filled on use
  std::vector<Entrance> entrances_;
  std::uint32_t dst_ = kUnreachable;
};

template <class DistanceFn>
void Distances::find_next_hops(std::uint32_t vertex, const DistanceFn& distance_of,
                               std::vector<std::uint32_t>& links) const {
  links.clear();
  const std::uint32_t distance = distance_of(vertex);
  if (distance == kUnreachable) return;
  for (const std::uint32_t id : in(dst_))
    if (graph_.links[id].from == vertex && weight(graph_.links[id]) == distance) links.push_back(id);
  const std::size_t last_hops = links.size();
  for (const std::uint32_t id : transit_links(vertex)) {
    const Link& link = graph_.links[id];
    if (link.to == dst_) continue;
    const std::uint32_t rest = distance_of(link.to);
    if (rest != kUnreachable && rest + weight(link) == distance) links.push_back(id);
  }
  if (last_hops > 0) std::sort(links.begin(), links.end());
  std::uint8_t min_order = UINT8_MAX;
  for (const std::uint32_t id : links) min_order = std::min(min_order, graph_.links[id].order);
  std::erase_if(links, [&](std::uint32_t id) { return graph_.links[id].order > min_order; });
}

}  // namespace manyworlds::core::network
