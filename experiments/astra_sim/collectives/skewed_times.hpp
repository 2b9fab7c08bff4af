// How long a collective of one phase takes when its members come to it at different times, or their ways differ: every
// message of every member, without congestion.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/astra_sim/collectives/phases.hpp"
#include "experiments/astra_sim/files/network_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// Returns how many messages skewed_ends() follows.
double skewed_messages(const Chunks& chunks);

/// Returns the nanosecond at which each member has the last chunk. `entries`, by member, are those at which they come.
/// A member sends in a round, and what it receives counts from when it comes, or from when it has sent itself, as it
/// asks for a message only then; the next round is `after_ns` behind the last of these. Each of the active chunks of a
/// member follows the one that began `active_chunks` before it.
std::vector<std::int64_t> skewed_ends(const Chunks& chunks, std::int64_t active_chunks, const Network& network,
                                      const std::vector<std::int64_t>& entries);

}  // namespace manyworlds::experiments::astra_sim
