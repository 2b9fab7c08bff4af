// Who waits for whom among paused ports, and whether that goes round: the deadlock that PFC allows on fabrics whose
// routes form a cycle (Hu et al., "Deadlocks in datacenter networks", HotNets 2016).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// (a paused link, a link in whose queue waits what came over the first): the first waits for the second.
using PauseWaits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The same between the links that `names` gives for the numbers in it.
PauseWaits renamed(PauseWaits waits, const std::vector<std::uint32_t>& names);

/// A cycle of the relation waits[port] -> port, in its order, beginning with its lowest port; empty if there is none.
std::vector<std::uint32_t> cycle_of(const std::vector<std::vector<std::uint32_t>>& waits);

/// Throws InputError that names the ports of a cycle of `waits`, which are links of `graph`. It depends on the set of
/// waits only.
[[noreturn]] void throw_pause_deadlock(const Graph& graph, const PauseWaits& waits);

}  // namespace manyworlds::core::network
