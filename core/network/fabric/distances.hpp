// Shortest-path distances from every vertex of a graph to a GPU. GPUs forward nothing, so every path to a GPU ends at a
// switch that it is cabled to (or at the source itself). Where GPUs relay (Graph::gpus_relay), they are treated as
// switches that can be entered only over scale-up links. Distances between switches are arithmetic on a grid
// (grid.hpp); elsewhere there is a table for each class of interchangeable switches (switch_classes.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/grid.hpp"
#include "core/network/fabric/switch_classes.hpp"

namespace manyworlds::core::network {

/// Returns the cost of a link in a path: 1 for a scale-up link, 1,000 times its length for a network link, so that a
/// scale-up hop is always preferred over leaving the node.
std::uint32_t weight(const Link& link);

/// Whether distances follow from the structure of the fabric where it has one, or always from one Dijkstra for each
/// destination's switch (the oracle). Both give the same distances.
enum class DistanceMethod : std::uint8_t { structure, tables };

class Distances {
 public:
  static constexpr std::uint32_t kUnreachable = network::kUnreachable;

  /// `graph` must outlive this object.
  explicit Distances(const Graph& graph, DistanceMethod method = DistanceMethod::structure);
  Distances(const Distances&) = delete;
  Distances& operator=(const Distances&) = delete;

  /// Returns the number of classes of interchangeable vertices, not counting those of a grid.
  std::size_t classes() const { return classes_.size(); }

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
    std::uint32_t vertex, weight;
    const DistanceTable* table;  // null on the grid
  };

  template <class End, class Keep>
  Adjacency adjacency(End end, Keep keep) const;
  std::vector<TransitLink> links_between_forwarding(bool without_grid) const;
  std::uint32_t between(std::uint32_t vertex, const Entrance& entrance) const;
  bool forwards(std::uint32_t vertex) const { return graph_.gpus_relay || graph_.vertices[vertex] != VertexKind::gpu; }
  /// Returns whether transit traffic may cross this link: whether its far end forwards packets that arrive over it.
  bool allows_transit(const Link& link) const {
    return graph_.vertices[link.to] != VertexKind::gpu || (graph_.gpus_relay && link.kind == LinkKind::scale_up);
  }

  const Graph& graph_;
  Adjacency out_, in_, transit_;
  GridDistances grid_;
  bool on_grid_ = false;  // the routers of the grid are joined as it says
  SwitchClasses classes_;
  std::vector<Entrance> entrances_;
  std::vector<std::uint32_t> min_transit_weight_;  // by vertex: of transit_links(); half of kUnreachable if it has none
  std::uint32_t min_last_weight_ = 0;              // of the last links to the destination
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
  if (distance >= min_transit_weight_[vertex] + min_last_weight_)  // else every other way is longer
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
