// What a fabric is built for, and what each kind of fabric says of itself.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::topologies {

/// A graph that somebody has read.
struct GivenGraph {
  core::network::Graph graph;
  std::int64_t gpus_per_node = 0;
};

/// What a fabric is built for: nodes of GPUs, each with its scale-up fabric inside and one NIC per GPU outside.
struct Site {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  core::compute::ScaleUp scale_up = core::compute::ScaleUp::nvswitch;
  std::int64_t scale_up_bits_per_second = 0;  // one direction, per GPU
  core::Time scale_up_latency_ps = 0;         // one link
  std::int64_t nic_bits_per_second = 0;       // one direction, per GPU; of NICs that GPUs share, per NIC
  core::Time nic_latency_ps = 0;              // one link, switching included
  std::int64_t shared_nics = 0;               // of a node, where GPUs share them; 0: each GPU has its own
  std::int64_t host_bits_per_second = 0;      // between a GPU and a NIC that it shares, or PCIe beside NVLink
  std::int64_t pcie_switch_gpus = 4;          // GPUs on a PCIe switch
  std::int64_t scale_up_planes = 1;           // NVSwitches of a node, each with an equal share of every GPU's rate
  std::shared_ptr<const GivenGraph> given = nullptr;  // of a fabric that is read instead of built
};

/// What a fabric says of itself, with its default options unless said otherwise; the tests hold every fabric to it.
struct Traits {
  std::int64_t nic_cables = 1;  // of a GPU, which share its NIC's rate
  bool full_bisection = true;   // half of the GPUs can send to the other half at the NICs' full rate
  bool from_file = false;       // it is read, not built: what else stands here says nothing
  bool acyclic = true;          // no cycle of links, each waiting for the next: lossless and yet free of deadlock
  core::OptionSet small = {};   // beside the defaults: four nodes of four GPUs have paths as long as any by default
};

struct Topology {
  std::string name;
  std::string help;
  std::vector<core::OptionInfo> options;
  /// The graph for checked options. Throws core::InputError where options and site do not fit together,
  /// saying what would.
  std::function<core::network::Graph(const core::OptionSet&, const Site&)> build;
  Traits traits = {};
  std::vector<std::string> also_called = {};
};

}  // namespace manyworlds::topologies
