// Fat tree of two tiers (leaves and spines) or three (pods connected by core switches), after Al-Fares et al., SIGCOMM
// 2008, section 3: with leaf_hosts = pod_leaves = k/2 and oversubscription 1, three tiers are the k-ary fat tree.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct FatTree {
  std::int64_t leaf_hosts = 32;
  double oversubscription = 1;
  std::int64_t spines = 0;
  std::int64_t tiers = 2;
  std::int64_t pod_leaves = 0;
};

const core::OptionTable<FatTree>& options() {
  static const core::OptionTable<FatTree> table{
      core::option("leaf_hosts", &FatTree::leaf_hosts, "NIC ports of a leaf switch, filled in GPU order", {1, 4096}),
      core::option("oversubscription", &FatTree::oversubscription, "NIC ports over uplinks of a leaf", {1, 4096}),
      core::option("spines", &FatTree::spines, "spines (of a pod, with 3 tiers); 0: one per uplink", {0, 4096}),
      core::option("tiers", &FatTree::tiers,
                   "2: leaves and spines; 3: pods of leaves and spines, connected by core switches", {2, 3}),
      core::option("pod_leaves", &FatTree::pod_leaves, "leaves of a pod, with 3 tiers; 0: leaf_hosts", {0, 4096}),
  };
  return table;
}

/// Adds the core switches. Each spine has as many cables up as down; core switches of plane s are connected to spine s
/// of every pod by one cable each.
void add_cores(core::network::Graph& graph, const FabricSpec& spec, const Tier& spines, std::int64_t planes,
               std::int64_t cores) {
  const Tier tier = add_tier(graph, planes * cores, "core");
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::size_t spine = static_cast<std::size_t>(plane); spine < spines.size();
         spine += static_cast<std::size_t>(planes))
      connect_tiers(graph, spec, {spines[spine]}, subtier(tier, plane, cores), 1);
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const FatTree parameters = options().make(values);
  if (parameters.tiers == 2 && parameters.pod_leaves != 0)
    throw core::InputError("fat_tree.pod_leaves needs fat_tree.tiers: 3");
  const Uplinks uplinks =
      uplinks_of("fat_tree", "leaf_hosts", parameters.leaf_hosts, parameters.oversubscription, parameters.spines);

  core::network::Graph graph = build_nodes(spec);
  const Tier leaves = add_tier(graph, (graph.gpus + parameters.leaf_hosts - 1) / parameters.leaf_hosts, "leaf");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    add_network_cable(graph, spec, gpu, leaves[gpu / static_cast<std::uint32_t>(parameters.leaf_hosts)]);
  if (leaves.size() == 1) return graph;

  const auto leaf_count = static_cast<std::int64_t>(leaves.size());
  const std::int64_t pod_leaves = parameters.tiers == 2       ? leaf_count
                                  : parameters.pod_leaves > 0 ? parameters.pod_leaves
                                                              : parameters.leaf_hosts;
  const std::int64_t pods = (leaf_count + pod_leaves - 1) / pod_leaves;
  const Tier spines = add_tier(graph, pods * uplinks.spines, "spine");
  for (std::int64_t pod = 0; pod < pods; ++pod)
    connect_tiers(graph, spec, subtier(leaves, pod, pod_leaves), subtier(spines, pod, uplinks.spines),
                  uplinks.cables());
  if (pods > 1) add_cores(graph, spec, spines, uplinks.spines, pod_leaves * uplinks.cables());
  return graph;
}

}  // namespace

Topology fat_tree() {
  return {
      "fat_tree",
      "leaves, spines and, with 3 tiers, cores",
      options().infos(),
      build,
      {.small_options = {{"leaf_hosts", std::int64_t{4}}, {"tiers", std::int64_t{3}}, {"pod_leaves", std::int64_t{2}}}},
      {"leaf_spine", "spine_leaf", "clos"}};
}

}  // namespace manyworlds::topologies
