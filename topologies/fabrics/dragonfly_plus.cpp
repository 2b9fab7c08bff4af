// Dragonfly+ (Shpiner et al., HiPINEB 2017): a group is leaves with the GPUs and spines with the global cables, every
// leaf joined to every spine. A minimal path goes up, across one global cable, and down, so no links wait in a cycle.
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

/// Least m with m * m * (m * m + 1) hosts: all four counts m, switches of 2m ports.
std::int64_t balanced_hosts(std::int64_t gpus) {
  std::int64_t m = 1;
  while (m * m * (m * m + 1) < gpus) ++m;
  return m;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  DragonflyPlus given = options().make(values);
  core::network::Graph graph = place_nodes(site);
  if (given.leaf_hosts == 0) given.leaf_hosts = balanced_hosts(graph.gpus);
  if (given.leaves == 0) given.leaves = given.leaf_hosts;
  if (given.spines == 0) given.spines = given.leaf_hosts;
  if (given.global_links == 0) given.global_links = given.leaves;

  const std::int64_t group_hosts = given.leaves * given.leaf_hosts;
  const std::int64_t groups = (graph.gpus + group_hosts - 1) / group_hosts;
  const Tier leaves = add_tier(graph, groups * given.leaves, "leaf");  // the last group is whole
  const Tier spines = add_tier(graph, groups * given.spines, "spine");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    connect(graph, site, gpu, leaves[static_cast<std::size_t>(gpu / given.leaf_hosts)]);
  std::vector<Tier> members;
  for (std::int64_t group = 0; group < groups; ++group) {
    members.push_back(part(spines, group, given.spines));
    join(graph, site, part(leaves, group, given.leaves), members.back(), 1);
  }
  join_groups(graph, site, "dragonfly_plus", members, {given.global_links, given.global_latency_ps, 1});
  return graph;
}

}  // namespace

Topology dragonfly_plus() {
  return {"dragonfly_plus",
          "groups of leaves and spines, spines joined globally",
          options().infos(),
          build,
          {.full_bisection = false}};
}

}  // namespace manyworlds::topologies
