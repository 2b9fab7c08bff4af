// How long a collective takes that has trees among its phases: no member stands for the others, so every message of
// every chunk of every rank is followed, without congestion.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/astra_sim/collectives/phases.hpp"
#include "experiments/astra_sim/files/network_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// Returns how many messages every_rank_ends() follows for a collective of `ranks`.
double every_rank_messages(const Chunks& chunks, std::size_t ranks);

/// Returns how often a chunk of the collective comes to a tree of a dimension.
std::int64_t trees_of(const Chunks& chunks, std::uint32_t dimension);

struct RankEnds {
  std::vector<std::int64_t> ns;  // at which each rank has the last chunk
  bool has_ties =
      false;  // chunks came to a dimension in one nanosecond, one of which may have had to wait for the other
};

/// Returns the nanosecond at which each rank has the last chunk, and whether ASTRA-sim may have taken chunks in another
/// order, which is that of its events. `ranks` ascend, and `entries` are those at which they
/// come. Up to `active_chunks` of a rank are in one dimension at a time, the others wait in the order in which they
/// came. `turns`, by dimension, are how often chunks of earlier collectives came to its trees: even times they take
/// that whose root is the last member, odd times that whose root is the first. In a tree the leaves send up, an
/// endpoint's delay after they came to it; whoever has all from below reduces it and sends on; the root sends down
/// again, and so does whoever has heard from above, after a reduction once more. Roots and inner ranks leave when they
/// have sent down. Throws InputError for times above kLongestNs.
RankEnds every_rank_ends(const Chunks& chunks, const std::vector<std::int64_t>& turns, std::int64_t active_chunks,
                         const Network& network, const std::vector<std::uint32_t>& ranks,
                         const std::vector<std::int64_t>& entries);

}  // namespace manyworlds::experiments::astra_sim
