// How long a collective takes that a custom algorithm carries out, without congestion.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/astra_sim/files/custom_algorithms.hpp"
#include "experiments/astra_sim/files/network_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// Returns the nanosecond at which each member of a group is done with the algorithm; `entries` are those at which they
/// come. A member takes the trace of its place among the group's ranks as they ascend; the peers of a trace are places
/// of the group as it is listed, as in ASTRA-sim. What depends on nothing that has not ended begins at once, however
/// much else runs: a send ends when its message has come, a receive when it is asked for and has come. Of receives with
/// one sender, tag and size, the k-th that is asked for meets the k-th message, those of one nanosecond in the order of
/// their ids. Throws InputError with the trace and node for a group of more ranks than the algorithm has traces, for
/// peers outside of the group, and for what waits for ever or is received by nobody.
std::vector<std::int64_t> custom_ends(const CustomAlgorithm& algorithm, const std::vector<std::uint32_t>& group,
                                      const Network& network, const std::vector<std::int64_t>& entries);

}  // namespace manyworlds::experiments::astra_sim
