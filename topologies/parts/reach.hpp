// Whether all GPUs of a graph reach each other: what a file or a list of faults has to leave intact.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

/// A pair (source, destination) of GPUs without a path, if there is one. Links come in pairs of directions.
std::optional<std::pair<std::uint32_t, std::uint32_t>> unconnected(const core::network::Graph& graph);

}  // namespace manyworlds::topologies
