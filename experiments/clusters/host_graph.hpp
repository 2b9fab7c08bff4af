// The graph of the hosts that an experiment uses, on the whole fabric of their cluster.
#pragma once

#include <string>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "experiments/clusters/fabric.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::experiments::clusters {

/// Returns a graph whose nodes are the hosts of `nodes` in that order, or, if that is empty, the first complete hosts.
/// NICs go to GPUs in order; GPUs that share a NIC reach it over their PCIe. Throws InputError if the cluster lacks a
/// host, has too few, or if one of them misses a NIC.
core::network::Graph build_host_graph(const Fabric& fabric, const topologies::FabricSpec& spec,
                                      const std::vector<std::string>& nodes);

}  // namespace manyworlds::experiments::clusters
