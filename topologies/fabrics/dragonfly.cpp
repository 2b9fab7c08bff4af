// Dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of a fully joined routers, each with p GPUs and h global
// cables; balanced where a = 2p = 2h. Minimal routing crosses one global cable. On one buffer class (the paper has two
// virtual channels) its links can wait for each other in a cycle.
#include "topologies/parts/groups.hpp"
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/room.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct Dragonfly {
  std::int64_t router_hosts = 0;
  std::int64_t group_routers = 0;
  std::int64_t global_links = 0;
  std::int64_t global_latency_ps = 0;
};

const core::OptionTable<Dragonfly>& options() {
  static const core::OptionTable<Dragonfly> table{
      core::option("router_hosts", &Dragonfly::router_hosts,
                   "NIC ports of a router, p; 0: the least with which a balanced dragonfly holds all GPUs", {0, 4096}),
      core::option("group_routers", &Dragonfly::group_routers, "routers of a group, a; 0: 2p", {0, 4096}),
      core::option("global_links", &Dragonfly::global_links, "global cables of a router, h; 0: p", {0, 4096}),
      core::option("global_latency_ps", &Dragonfly::global_latency_ps,
                   "latency of a global cable, switching included; 0: as the cluster's other cables", {0, 1e15}, "ps"),
  };
  return table;
}

/// Least p with 2p * p * (2p * p + 1) hosts.
std::int64_t balanced_hosts(std::int64_t gpus) {
  std::int64_t p = 1;
  while (2 * p * p * (2 * p * p + 1) < gpus) ++p;
  return p;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  Dragonfly given = options().make(values);
  core::network::Graph graph = place_nodes(site);
  if (given.router_hosts == 0) given.router_hosts = balanced_hosts(graph.gpus);
  if (given.group_routers == 0) given.group_routers = 2 * given.router_hosts;
  if (given.global_links == 0) given.global_links = given.router_hosts;

  const std::int64_t group_hosts = given.group_routers * given.router_hosts;
  const std::int64_t groups = (graph.gpus + group_hosts - 1) / group_hosts;
  const Tier routers = add_tier(graph, groups * given.group_routers, "router");  // the last group is whole
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    connect(graph, site, gpu, routers[static_cast<std::size_t>(gpu / given.router_hosts)]);
  require_room(graph, 0, groups * given.group_routers * (given.group_routers - 1) / 2, "router");
  std::vector<Tier> members;
  for (std::int64_t group = 0; group < groups; ++group) {
    members.push_back(part(routers, group, given.group_routers));
    for (std::size_t a = 0; a < members.back().size(); ++a)
      for (std::size_t b = a + 1; b < members.back().size(); ++b)
        join_routers(graph, site, members.back()[a], members.back()[b], 1, 0);
  }
  // A global cable counts for three: local, global, local must be shorter than two global ones.
  join_groups(graph, site, "dragonfly", members, {given.global_links, given.global_latency_ps, 3});
  return graph;
}

}  // namespace

Topology dragonfly() {
  return {"dragonfly",
          "fully joined groups of routers; can deadlock under PFC",
          options().infos(),
          build,
          {.full_bisection = false,
           .acyclic = false,
           .small = {{"router_hosts", std::int64_t{2}}, {"group_routers", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies
