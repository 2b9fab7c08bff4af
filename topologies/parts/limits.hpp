// Size limits of a fabric: beyond any existing one, so that a mistyped digit is rejected before it fills the memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

inline constexpr std::int64_t kMaxVertices = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxCables = std::int64_t{1} << 22;

/// Throws core::InputError unless `graph` may grow by `vertices` and `cables`. `what` names the kind of switch, such as
/// "core".
void check_limits(const core::network::Graph& graph, std::int64_t vertices, std::int64_t cables, std::string_view what);

/// Throws core::InputError if the longest path has more links than a packet can count. `topology` names what the user
/// requested, and `remedy` what would be valid.
void check_path_length(std::string_view topology, std::int64_t links, std::string_view remedy);

}  // namespace manyworlds::topologies
