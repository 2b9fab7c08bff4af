// The interface of fabrics: the specification that a fabric is built from, and the description of each type of fabric.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

/// A graph read from a file.
struct LoadedGraph {
  core::network::Graph graph;
  std::int64_t gpus_per_node = 0;
};

/// The specification of a cluster that a fabric is built for: nodes of GPUs, with a scale-up fabric inside each node
/// and one NIC per GPU (or shared NICs) outside.
struct FabricSpec {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  core::compute::ScaleUp scale_up = core::compute::ScaleUp::nvswitch;
  std::int64_t scale_up_bits_per_second = 0;  // one direction, per GPU
  core::Time scale_up_latency_ps = 0;         // of one link
  std::int64_t nic_bits_per_second = 0;       // one direction, per GPU; with shared NICs, per NIC
  core::Time nic_latency_ps = 0;              // of one link, switching included
  std::int64_t shared_nics = 0;               // per node, if GPUs share NICs; 0: each GPU has its own
  std::int64_t host_bits_per_second = 0;      // between a GPU and its shared NIC, or PCIe beside NVLink bridges
  std::int64_t pcie_switch_gpus = 4;          // GPUs per PCIe switch
  std::int64_t scale_up_planes = 1;           // NVSwitches per node, each with an equal share of every GPU's rate
  std::shared_ptr<const LoadedGraph> loaded_graph = nullptr;  // for fabrics that are read from a file
  bool operator==(const FabricSpec&) const = default;
};

/// Properties of a fabric with its default options; the tests check every fabric for them.
struct Traits {
  std::int64_t nic_cables = 1;  // per GPU; they share its NIC's rate
  bool full_bisection = true;   // half of the GPUs can send to the other half at the NICs' full rate
  bool from_file = false;       // the fabric is read, not built; the other traits have no meaning
  bool acyclic = true;          // links cannot wait for each other in a cycle: lossless without deadlock
  core::OptionSet small_options =
      {};  // options with which four nodes of four GPUs have paths as long as any by default
};

struct Topology {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  /// Builds the graph from checked options. Throws core::InputError, which states valid values, if options and spec do
  /// not fit together.
  std::function<core::network::Graph(const core::OptionSet&, const FabricSpec&)> build;
  Traits traits = {};
  std::vector<std::string> also_called = {};
};

}  // namespace manyworlds::topologies
