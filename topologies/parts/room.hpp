// How large a fabric may get: beyond any that exists, so that a slipped digit is refused before it fills the memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

inline constexpr std::int64_t kMostVertices = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostCables = std::int64_t{1} << 22;

/// Throws core::InputError unless `graph` may grow by `vertices` ("core" switches, say: `what`) and `cables`.
void require_room(const core::network::Graph& graph, std::int64_t vertices, std::int64_t cables, std::string_view what);

/// Throws core::InputError where the longest path, of `links` links, is more than a packet can count. `topology` is
/// what the user asked for and `instead` what would be right.
void require_reach(std::string_view topology, std::int64_t links, std::string_view instead);

}  // namespace manyworlds::topologies
