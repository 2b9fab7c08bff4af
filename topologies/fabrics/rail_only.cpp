// Rail-only (Wang et al. 2023, arXiv 2307.12169): a rail-optimized fabric without spines. Traffic to another rail goes
// over the sender's scale-up fabric to the GPU on that rail and leaves through its NIC, as with NCCL's PXN.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct RailOnly {};

const core::OptionTable<RailOnly>& options() {
  static const core::OptionTable<RailOnly> table{};
  return table;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  options().make(values);
  core::network::Graph graph = build_nodes(spec);
  graph.gpus_relay = true;
  const Tier rails = add_tier(graph, spec.gpus_per_node, "rail");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    add_network_cable(graph, spec, gpu, rails[static_cast<std::size_t>(gpu % spec.gpus_per_node)]);
  return graph;
}

}  // namespace

Topology rail_only() {
  return {"rail_only", "one switch per rail, no spines; GPUs relay to other rails", options().infos(), build};
}

}  // namespace manyworlds::topologies
