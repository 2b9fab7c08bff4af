// Dragonfly+ (Shpiner et al., HiPINEB 2017): a group has leaves with the GPUs and spines with the global cables, and
// every leaf is connected to every spine. A minimal path goes up, across one global cable, and down, so no links wait
// for each other in a cycle.
#include "topologies/parts/groups.hpp"
#include "topologies/parts/nodes.hpp"

namespace manyworlds::topologies {

namespace {

struct DragonflyPlus {
  std::int64_t leaf_hosts = 0;
  std::int64_t leaves = 0;
  std::int64_t spines = 0;
  std::int64_t global_links = 0;
  std::int64_t global_latency_ps = 0;
};

const core::OptionTable<DragonflyPlus>& options() {
  static const core::OptionTable<DragonflyPlus> table{
      core::option("leaf_hosts", &DragonflyPlus::leaf_hosts,
                   "NIC ports of a leaf; 0: the least with which a balanced one holds all GPUs", {0, 4096}),
      core::option("leaves", &DragonflyPlus::leaves, "leaves of a group; 0: leaf_hosts", {0, 4096}),
      core::option("spines", &DragonflyPlus::spines, "spines of a group; 0: leaf_hosts", {0, 4096}),
      core::option("global_links", &DragonflyPlus::global_links, "global cables of a spine; 0: leaves", {0, 4096}),
      core::option("global_latency_ps", &DragonflyPlus::global_latency_ps,
                   "latency of a global cable, switching included; 0: as the cluster's other cables", {0, 1e15}, "ps"),
  };
  return table;
}

/// Returns the least m for which m * m * (m * m + 1) hosts, with all four counts m and switches of 2m ports, suffice.
std::int64_t balanced_hosts(std::int64_t gpus) {
  std::int64_t m = 1;
  while (m * m * (m * m + 1) < gpus) ++m;
  return m;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  DragonflyPlus parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  if (parameters.leaf_hosts == 0) parameters.leaf_hosts = balanced_hosts(graph.gpus);
  if (parameters.leaves == 0) parameters.leaves = parameters.leaf_hosts;
  if (parameters.spines == 0) parameters.spines = parameters.leaf_hosts;
  if (parameters.global_links == 0) parameters.global_links = parameters.leaves;

  const std::int64_t group_hosts = parameters.leaves * parameters.leaf_hosts;
  const std::int64_t groups = (graph.gpus + group_hosts - 1) / group_hosts;
  const Tier leaves = add_tier(graph, groups * parameters.leaves, "leaf");  // the last group is complete
  const Tier spines = add_tier(graph, groups * parameters.spines, "spine");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    add_network_cable(graph, spec, gpu, leaves[static_cast<std::size_t>(gpu / parameters.leaf_hosts)]);
  std::vector<Tier> global_routers;
  for (std::int64_t group = 0; group < groups; ++group) {
    global_routers.push_back(subtier(spines, group, parameters.spines));
    connect_tiers(graph, spec, subtier(leaves, group, parameters.leaves), global_routers.back(), 1);
  }
  join_groups(graph, spec, "dragonfly_plus", global_routers,
              {parameters.global_links, parameters.global_latency_ps, 1});
  return graph;
}

}  // namespace

Topology dragonfly_plus() {
  return {"dragonfly_plus",
          "groups of leaves and spines; global cables connect the spines",
          options().infos(),
          build,
          {.full_bisection = false}};
}

}  // namespace manyworlds::topologies
