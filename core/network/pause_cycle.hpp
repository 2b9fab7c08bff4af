// Who waits for whom among paused ports, and whether that goes round: the deadlock that PFC allows on fabrics whose
// routes form a cycle (Hu et al., "Deadlocks in datacenter networks", HotNets 2016).
#pragma once

#include <cstdint>
#include <vector>

namespace manyworlds::core::network {

/// A cycle of the relation waits[port] -> port, in its order, beginning with its lowest port; empty if there is none.
std::vector<std::uint32_t> cycle_of(const std::vector<std::vector<std::uint32_t>>& waits);

}  // namespace manyworlds::core::network
