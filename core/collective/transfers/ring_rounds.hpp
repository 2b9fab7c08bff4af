// Ring rounds, direct ones, and the orders in which rings visit the members of nodes: the parts of ring, two_level and
// chain.
#pragma once

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

/// By member: the nodes of the DAG that must finish before the member begins the next phase of a multi-phase algorithm.
using Frontier = std::vector<std::vector<std::uint32_t>>;

struct Ring {
  std::vector<std::uint32_t> members;  // in ring order
  std::vector<BlockSet> blocks;        // the block of each member
};

/// Returns a ring for each node, with the blocks of all members of each one's rail, and one for each rail, with its
/// members' own blocks.
std::vector<Ring> node_rings(const Shape& shape);
std::vector<Ring> rail_rings(const Shape& shape);

/// The phases of a ring: n - 1 rounds in which blocks are reduced, n - 1 rounds in which they are gathered.
struct RingPhases {
  bool reduce = false, gather = false;
};

/// A position of one of several rings.
struct RingPlace {
  std::uint32_t ring, position;
};

/// Adds the rounds of rings with equally many members. After the reduction, position i of a ring holds its block
/// reduced; the gather begins from there. Part first_share + s of `shares` of every block travels as slice s. Each
/// slice waits for its frontier, which is replaced by the frontier after these rounds. Transfers are added round by
/// round, slice by slice, in the order of `places`, which has every position of every ring.
void add_ring_rounds(DagBuilder& dag, std::span<const Ring> rings, std::span<const RingPlace> places, RingPhases phases,
                     std::uint32_t first_share, std::uint32_t shares, std::vector<Frontier>& frontiers);
/// The same for one ring, in the order of its positions.
void add_ring_rounds(DagBuilder& dag, const Ring& ring, RingPhases phases, std::uint32_t first_share,
                     std::uint32_t shares, std::vector<Frontier>& frontiers);

/// Adds the same phases in one round each, in which every member sends to every other at once: on a full mesh, as many
/// bytes on each link as rings over all of them have.
void add_direct_rounds(DagBuilder& dag, const Ring& ring, RingPhases phases, std::uint32_t first_share,
                       std::uint32_t shares, std::vector<Frontier>& frontiers);

/// Returns the members in ring order. Every other node is traversed backwards, so that the ring connects members of
/// equal local index between nodes (along a rail). Channels begin at different local indices, which spreads their
/// connections between nodes over the rails. On a full mesh their orders inside nodes differ, too (mesh_orders.hpp).
std::vector<std::uint32_t> ring_order(const Shape& shape, std::uint32_t channel);

/// Returns the number of slices into which a channel divides a transfer of at most `bytes`, so that none exceeds
/// Shape::chunk_bytes.
std::uint32_t slice_count(const Shape& shape, std::int64_t bytes);

}  // namespace manyworlds::core::collective
