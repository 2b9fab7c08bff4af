// Rounds of a ring, and the orders in which rings go through nodes: what ring, two_level and chain are made of.
#pragma once

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

/// The nodes after which each member may go on to the next phase of an algorithm of several phases.
using Frontier = std::vector<std::vector<std::uint32_t>>;

struct Ring {
  std::vector<std::uint32_t> members;  // in ring order
  std::vector<Part> blocks;            // the block of each of them
};

/// Which rounds a kind of operation takes: n - 1 in which blocks are reduced, n - 1 in which they are gathered.
struct Rounds {
  bool reduce = false, gather = false;
};

/// Position i ends with its block reduced, and begins to gather with its block. Share first + s of `shares` of every
/// block travels as slice s, as soon as the slice's frontier allows, which is replaced.
void add_rounds(DagBuilder& dag, const Ring& ring, Rounds rounds, std::uint32_t first_share, std::uint32_t shares,
                std::vector<Frontier>& frontiers);

/// Every other node is passed through backwards, so that the ring goes from node to node between members of equal
/// local index: along a rail. Channels begin at different local indices, so that their crossings spread over the rails.
std::vector<std::uint32_t> ring_order(const Shape& shape, std::uint32_t channel);

/// How many slices a channel cuts a transfer of at most `bytes` into so that none carries more than Shape::chunk_bytes.
std::uint32_t slices(const Shape& shape, std::int64_t bytes);

}  // namespace manyworlds::core::collective
