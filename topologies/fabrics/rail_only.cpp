// Rail-only (Wang et al. 2023, arXiv 2307.12169): the rails of a rail-optimized fabric without spines. What goes to
// another rail crosses the sender's scale-up fabric to the GPU on that rail and leaves by its NIC, as NCCL's PXN does.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct RailOnly {};

const core::OptionTable<RailOnly>& options() {
  static const core::OptionTable<RailOnly> table{};
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  options().make(values);
  core::network::Graph graph = place_nodes(site);
  graph.gpus_relay = true;
  const Tier rails = add_tier(graph, site.gpus_per_node, "rail");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    connect(graph, site, gpu, rails[static_cast<std::size_t>(gpu % site.gpus_per_node)]);
  return graph;
}

}  // namespace

Topology rail_only() {
  return {"rail_only", "one switch per rail and none between; GPUs relay to other rails", options().infos(), build};
}

}  // namespace manyworlds::topologies
