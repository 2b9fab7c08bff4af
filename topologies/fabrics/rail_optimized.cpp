// Rail-optimized: GPU i of every node of a pod is on the pod's leaf i (its rail), and spines join the rails, as in the
// NVIDIA DGX SuperPOD reference architecture; described in Wang et al. 2023 (arXiv 2307.12169).
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct RailOptimized {
  double oversubscription = 1;
  std::int64_t nodes_per_pod = 0;
  std::int64_t spines = 0;
};

const core::OptionTable<RailOptimized>& options() {
  static const core::OptionTable<RailOptimized> table{
      core::option("oversubscription", &RailOptimized::oversubscription, "NIC ports over uplinks of a rail", {1, 4096}),
      core::option("nodes_per_pod", &RailOptimized::nodes_per_pod, "NIC ports of a rail switch; 0: all nodes",
                   {0, 1 << 20}),
      core::option("spines", &RailOptimized::spines, "spine switches; 0: one per uplink", {0, 4096}),
  };
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const RailOptimized given = options().make(values);
  core::network::Graph graph = place_nodes(site);
  const std::int64_t pod_nodes = given.nodes_per_pod > 0 ? given.nodes_per_pod : site.nodes;
  const Uplinks up = uplinks_of("rail_optimized", "nodes_per_pod", pod_nodes, given.oversubscription, given.spines);

  const std::int64_t pods = (site.nodes + pod_nodes - 1) / pod_nodes;
  const Tier rails = add_tier(graph, pods * site.gpus_per_node, "rail");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
    const std::int64_t pod = gpu / site.gpus_per_node / pod_nodes, rail = gpu % site.gpus_per_node;
    connect(graph, site, gpu, rails[static_cast<std::size_t>(pod * site.gpus_per_node + rail)]);
  }
  if (rails.size() > 1) join(graph, site, rails, add_tier(graph, up.spines, "spine"), up.cables());
  return graph;
}

}  // namespace

Topology rail_optimized() {
  return {"rail_optimized",
          "one leaf per rail, spines between",
          options().infos(),
          build,
          {.small = {{"nodes_per_pod", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies
