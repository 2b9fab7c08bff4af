// The members of a collective as a communication library sees them: how many, on which nodes, and the paths between
// them.
#pragma once

#include <compare>
#include <cstdint>

#include "core/base/units.hpp"

namespace manyworlds::core::collective {

/// The path between two members, in one direction: the rate of its slowest link, and the sum of its latencies.
struct Path {
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;
  auto operator<=>(const Path&) const = default;
};

/// The members of a collective. All but the first two values matter only if the library depends on the network.
struct Communicator {
  std::uint32_t members = 0;
  std::uint32_t per_node = 1;   // see Shape
  Path intra_node, inter_node;  // paths inside a node, and between nodes
  bool node_switches = false;   // the members of each node share one switch
  bool rail_switches = false;   // the members of equal local index share one switch
  bool node_mesh = false;       // the members of each node have links of their own to one another
  auto operator<=>(const Communicator&) const = default;
};

/// Returns how many links a member has to others of its node, each of the rate of the path.
inline std::uint32_t links_of_member(const Communicator& communicator) {
  return communicator.node_mesh ? communicator.per_node - 1 : 1;
}

}  // namespace manyworlds::core::collective
