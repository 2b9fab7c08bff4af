// NICs that GPUs share: a fabric is built for the NICs as if they were its hosts, and the GPUs are put behind them.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// The fabric that `topology` builds for a site whose nodes have site.shared_nics NICs: GPU i of a node sends over NIC
/// i x shared_nics / gpus_per_node, on a link of host_bits_per_second whose latency counts as the NIC's. Without shared
/// NICs it is what the topology builds. Throws as Topology::build().
core::network::Graph build_fabric(const Topology& topology, const core::OptionSet& options, const Site& site);

}  // namespace manyworlds::topologies
