// Groups of routers joined by global cables, as in dragonflies: any two groups by the same number of them.
#pragma once

#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/tiers.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

struct GlobalCables {
  std::int64_t each = 1;      // global ports of a router
  core::Time latency_ps = 0;  // of a global cable; 0: the cluster's
  std::uint8_t length = 1;    // what one counts for in a path
};

/// Joins any two of `groups` by floor(ports of a group / (groups - 1)) cables; ports are used up router by router, in
/// the order of the groups they lead to (the consecutive arrangement of Kim et al. 2008, figure 5). Throws
/// core::InputError, naming `topology`, where a group has too few ports.
void join_groups(core::network::Graph& graph, const Site& site, std::string_view topology,
                 const std::vector<Tier>& groups, const GlobalCables& cables);

}  // namespace manyworlds::topologies
