// Dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of `a` fully connected routers, each with p GPUs and h global
// cables; balanced if a = 2p = 2h. Minimal routing uses one global cable. With one buffer class (the paper has two
// virtual channels) links can wait for each other in a cycle.
#include "topologies/parts/groups.hpp"
#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
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
      core::option(
          "router_hosts", &Dragonfly::router_hosts,
          "NIC ports of a router, p; 0: the smallest number with which a balanced dragonfly has room for all GPUs",
          {0, 4096}),
      core::option("group_routers", &Dragonfly::group_routers, "routers of a group, a; 0: 2p", {0, 4096}),
      core::option("global_links", &Dragonfly::global_links, "global cables of a router, h; 0: p", {0, 4096}),
      core::option("global_latency_ps", &Dragonfly::global_latency_ps,
                   "latency of a global cable, switching included; 0: as the cluster's other cables", {0, 1e15}, "ps"),
  };
  return table;
}

/// Returns the least p for which a balanced dragonfly, with 2p * p * (2p * p + 1) hosts, has room for `gpus`.
std::int64_t balanced_hosts(std::int64_t gpus) {
  std::int64_t p = 1;
  while (2 * p * p * (2 * p * p + 1) < gpus) ++p;
  return p;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  Dragonfly parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  if (parameters.router_hosts == 0) parameters.router_hosts = balanced_hosts(graph.gpus);
  if (parameters.group_routers == 0) parameters.group_routers = 2 * parameters.router_hosts;
  if (parameters.global_links == 0) parameters.global_links = parameters.router_hosts;

  const std::int64_t group_hosts = parameters.group_routers * parameters.router_hosts;
  const std::int64_t groups = (graph.gpus + group_hosts - 1) / group_hosts;
  const Tier routers = add_tier(graph, groups * parameters.group_routers, "router");  // the last group is complete
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    add_network_cable(graph, spec, gpu, routers[static_cast<std::size_t>(gpu / parameters.router_hosts)]);
  check_limits(graph, 0, groups * parameters.group_routers * (parameters.group_routers - 1) / 2, "router");
  std::vector<Tier> global_routers;
  for (std::int64_t group = 0; group < groups; ++group) {
    global_routers.push_back(subtier(routers, group, parameters.group_routers));
    for (std::size_t a = 0; a < global_routers.back().size(); ++a)
      for (std::size_t b = a + 1; b < global_routers.back().size(); ++b)
        join_routers(graph, spec, global_routers.back()[a], global_routers.back()[b], 1, 0);
  }
  // A global cable has length 3, so that local, global, local is shorter than two global cables.
  join_groups(graph, spec, "dragonfly", global_routers, {parameters.global_links, parameters.global_latency_ps, 3});
  return graph;
}

}  // namespace

Topology dragonfly() {
  return {"dragonfly",
          "fully connected groups of routers; can deadlock under PFC",
          options().infos(),
          build,
          {.full_bisection = false,
           .acyclic = false,
           .small_options = {{"router_hosts", std::int64_t{2}}, {"group_routers", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies
