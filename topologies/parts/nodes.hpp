// What every fabric starts from: the GPUs, node by node, and the scale-up fabric inside each node.
#pragma once

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// GPUs [0, nodes x gpus_per_node) and their scale-up links; NIC cables are left to the fabric.
/// Throws core::InputError for a site that cannot be built, such as one with an unknown rate.
core::network::Graph place_nodes(const Site& site);

}  // namespace manyworlds::topologies
