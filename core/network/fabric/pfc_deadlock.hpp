// Detection of PFC deadlocks: cyclic buffer dependencies among paused ports, which are possible on fabrics whose routes
// form a cycle (Hu et al., "Deadlocks in datacenter networks", HotNets 2016).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// Pairs (paused link, link whose egress queue holds packets that arrived over it). The first waits for the second.
using PauseDependencies = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Returns `waits` with every link number n replaced by names[n].
PauseDependencies relabeled(PauseDependencies waits, const std::vector<std::uint32_t>& names);

/// Returns the ports of a cycle of the relation waits[port] -> port, in cycle order, beginning with the lowest port;
/// returns an empty vector if there is no cycle.
std::vector<std::uint32_t> find_cycle(const std::vector<std::vector<std::uint32_t>>& waits);

/// Throws InputError that names the ports of a cycle of `waits`, whose numbers are links of `graph`. The message
/// depends only on the set of waits, not on its order.
[[noreturn]] void throw_pfc_deadlock(const Graph& graph, const PauseDependencies& waits);

}  // namespace manyworlds::core::network
