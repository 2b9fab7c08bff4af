// The orders in which rings visit the members of a node whose GPUs have a link of their own to each other one (AMD's
// Instinct). One ring takes one of a member's links; these rings together take every link equally often, in both
// directions, as those do that RCCL lays there: in one node, rings along a double cover of the complete graph by
// Hamiltonian cycles (ROCm/rccl @0cbce2a, src/graph/rome_models.cc, rome_model_79: seven cycles of eight GPUs, each in
// both directions); across nodes, paths that enter and leave a node at a GPU of their own (rome_model_81: eight paths,
// which have each of the 56 directed links once).
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// Returns how many rings through `members` cross all links between them equally often: n - 1 if n is odd, 2 (n - 1) if
/// it is even, 1 for two members.
std::uint32_t mesh_rings(std::uint32_t members);

/// Returns the order of ring `ring` < mesh_rings(members).
std::vector<std::uint32_t> mesh_ring(std::uint32_t members, std::uint32_t ring);

/// Returns how many paths through `members` cross all links equally often and begin at every member equally often: n if
/// it is even, 2 n if it is odd.
std::uint32_t mesh_paths(std::uint32_t members);

/// Returns the order of path `path` < mesh_paths(members).
std::vector<std::uint32_t> mesh_path(std::uint32_t members, std::uint32_t path);

/// Returns whether the channels of a shape have orders of their own over the links of each node.
inline bool spreads_over_mesh(const Shape& shape) {
  return shape.node_mesh && shape.channels > 1;
}

/// Returns how many channels of a ring in one node share its most loaded link.
inline std::uint32_t channels_per_link(const Shape& shape) {
  const bool spread = spreads_over_mesh(shape) && shape.per_node == shape.members;
  return spread ? (shape.channels + shape.members - 2) / (shape.members - 1) : shape.channels;
}

}  // namespace manyworlds::core::collective
