// NICs that several GPUs share: the fabric is built with the NICs as hosts, and the GPUs are then connected to the
// NICs.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// Returns the fabric of `topology` for a spec whose nodes have spec.shared_nics NICs: GPU i of a node uses NIC i x
/// shared_nics / gpus_per_node, over a link of host_bits_per_second whose latency is part of the NIC's. Without shared
/// NICs, returns what the topology builds. Throws as Topology::build().
core::network::Graph build_fabric(const Topology& topology, const core::OptionSet& options, const FabricSpec& spec);

}  // namespace manyworlds::topologies
