// Rail-optimized: GPU i of every node of a pod is on the pod's leaf i (its rail), and spines connect the rails, as in
// the NVIDIA DGX SuperPOD reference architecture; described in Wang et al. 2023 (arXiv 2307.12169).
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

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const RailOptimized parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  const std::int64_t pod_nodes = parameters.nodes_per_pod > 0 ? parameters.nodes_per_pod : spec.nodes;
  const Uplinks uplinks =
      uplinks_of("rail_optimized", "nodes_per_pod", pod_nodes, parameters.oversubscription, parameters.spines);

  const std::int64_t pods = (spec.nodes + pod_nodes - 1) / pod_nodes;
  const Tier rails = add_tier(graph, pods * spec.gpus_per_node, "rail");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
    const std::int64_t pod = gpu / spec.gpus_per_node / pod_nodes, rail = gpu % spec.gpus_per_node;
    add_network_cable(graph, spec, gpu, rails[static_cast<std::size_t>(pod * spec.gpus_per_node + rail)]);
  }
  if (rails.size() > 1) connect_tiers(graph, spec, rails, add_tier(graph, uplinks.spines, "spine"), uplinks.cables());
  return graph;
}

}  // namespace

Topology rail_optimized() {
  return {"rail_optimized",
          "one leaf per rail, spines between rails",
          options().infos(),
          build,
          {.small_options = {{"nodes_per_pod", std::int64_t{2}}}}};
}

}  // namespace manyworlds::topologies
