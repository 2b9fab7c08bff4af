// All NICs on one switch without internal contention: the fabric of closed forms, and the bound on every other.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/tiers.hpp"

namespace manyworlds::topologies {

namespace {

struct OneSwitch {};

const core::OptionTable<OneSwitch>& options() {
  static const core::OptionTable<OneSwitch> table{};
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  options().make(values);
  core::network::Graph graph = place_nodes(site);
  const Tier only = add_tier(graph, 1, "switch");
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) connect(graph, site, gpu, only.front());
  return graph;
}

}  // namespace

Topology one_switch() {
  return {"one_switch", "every NIC on one ideal switch", options().infos(), build};
}

}  // namespace manyworlds::topologies
