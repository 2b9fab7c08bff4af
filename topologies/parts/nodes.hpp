// The part that all fabrics share: the GPUs, node by node, and the scale-up fabric inside each node.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// Returns a graph with GPUs [0, nodes x gpus_per_node) and their scale-up links; the fabric adds the NIC cables.
/// Throws core::InputError for a spec that cannot be built, such as one with an unknown rate.
core::network::Graph build_nodes(const FabricSpec& spec);

}  // namespace manyworlds::topologies
