// All NICs on one switch without internal contention: the fabric of closed forms, and the performance bound of all
// others.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct OneSwitch {};

const core::OptionTable<OneSwitch>& options() {
  static const core::OptionTable<OneSwitch> table{};
  return table;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  options().make(values);
  core::network::Graph graph = build_nodes(spec);
  const Tier ideal_switch = add_tier(graph, 1, "switch");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) add_network_cable(graph, spec, gpu, ideal_switch.front());
  return graph;
}

}  // namespace

Topology one_switch() {
  return {"one_switch", "every NIC on one ideal switch", options().infos(), build};
}

}  // namespace manyworlds::topologies
