// Connectivity check of a graph: topology files and faults must leave all GPUs reachable from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

/// Returns a pair (source, destination) of GPUs without a path, if there is one. Links must be stored in pairs, one per
/// direction of a cable.
std::optional<std::pair<std::uint32_t, std::uint32_t>> find_unreachable_pair(const core::network::Graph& graph);

}  // namespace manyworlds::topologies
