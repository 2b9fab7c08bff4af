// How far every vertex of a graph is from a GPU. GPUs forward nothing, so all that enters a GPU comes over the switches
// it is cabled to, and GPUs behind one switch share that switch's table: tables grow with switches, not with GPUs.
// Where GPUs relay (Graph::gpus_relay) they count as switches that only scale-up links lead to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// Of one link. A scale-up hop is always preferred over leaving the node.
std::uint32_t weight(const Link& link);

class Distances {
 public:
  static constexpr std::uint32_t kUnreachable = UINT32_MAX;

  /// `graph` must outlive this.
  explicit Distances(const Graph& graph);
  Distances(const Distances&) = delete;
  Distances& operator=(const Distances&) = delete;

  /// Links by their ends, ascending.
  std::span<const std::uint32_t> out(std::uint32_t vertex) const { return out_.of(vertex); }
  std::span<const std::uint32_t> in(std::uint32_t vertex) const { return in_.of(vertex); }
  /// Of out(vertex), those behind which a path may go on.
  std::span<const std::uint32_t> onward(std::uint32_t vertex) const { return onward_.of(vertex); }

  /// What from() is about. Tables that are missing are made (not thread-safe).
  void aim_at(std::uint32_t dst);
  /// The least sum of weights from `vertex` to the vertex aimed at, with no more transit through GPUs than
  /// the graph allows.
  std::uint32_t from(std::uint32_t vertex) const;

 private:
  struct Adjacency {  // link ids by vertex, one after another
    std::vector<std::uint32_t> begin, ids;
    std::span<const std::uint32_t> of(std::uint32_t vertex) const {
      return {ids.data() + begin[vertex], ids.data() + begin[vertex + 1]};
    }
  };
  struct Entrance {  // a way into the vertex aimed at: over `table`'s vertex
    std::uint32_t island, weight;
    const std::uint32_t* table;
  };

  template <class End, class Keep>
  Adjacency adjacency(End end, Keep keep) const;
  void find_islands();
  const std::vector<std::uint32_t>& table_of(std::uint32_t vertex);
  bool forwards(std::uint32_t vertex) const { return graph_.gpus_relay || graph_.vertices[vertex] != VertexKind::gpu; }
  /// May a path go on where this link leads?
  bool passes(const Link& link) const {
    return graph_.vertices[link.to] != VertexKind::gpu || (graph_.gpus_relay && link.kind == LinkKind::scale_up);
  }

  const Graph& graph_;
  Adjacency out_, in_, onward_;
  // Forwarding vertices that links between such join make an island; a node's scale-up switch is often one by itself.
  std::vector<std::uint32_t> island_, place_;        // by vertex: its island, and its place there
  std::vector<std::vector<std::uint32_t>> members_;  // by island, in order of place
  std::vector<std::vector<std::uint32_t>> tables_;   // by vertex: distances of its island's members to it; made on use
  std::vector<Entrance> entrances_;
  std::uint32_t dst_ = kUnreachable;
};

}  // namespace manyworlds::core::network
