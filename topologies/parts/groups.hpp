// Groups of routers connected by global cables, as in dragonflies: equally many cables between any two groups.
#pragma once

#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/tiers.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

struct GlobalCables {
  std::int64_t per_router = 1;  // global ports per router
  core::Time latency_ps = 0;    // of a global cable; 0: that of the cluster's cables
  std::uint8_t length = 1;      // of a global cable in a path, see core::network::Link
};

/// Connects any two of `groups` by floor(ports of a group / (groups - 1)) cables. Ports are assigned router by router,
/// in the order of the groups that they lead to (the consecutive arrangement of Kim et al. 2008, figure 5). Throws
/// core::InputError, which names `topology`, if a group has too few ports.
void join_groups(core::network::Graph& graph, const FabricSpec& spec, std::string_view topology,
                 const std::vector<Tier>& groups, const GlobalCables& cables);

}  // namespace manyworlds::topologies
