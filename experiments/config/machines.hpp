// Heterogeneous clusters and slow GPUs: converts settings to the kinds of machines that core distinguishes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "core/network/fabric/graph.hpp"
#include "experiments/costs/power.hpp"

namespace manyworlds::experiments {

struct ExperimentConfig;

/// Sections of the node groups after the first, cluster.second and cluster.third.
inline constexpr std::array<const char*, 2> kNodeGroups{"second", "third"};

struct NodeGroup {
  std::int64_t nodes = 0;       // 0: not given
  double nic_gbps = 0;          // one direction, of one GPU; 0: as in the first group
  double host_power_w = 0;      // 0: as in the first group
  double usd_per_gpu_hour = 0;  // 0: as in the first group if its GPU is identical, otherwise unknown
  double usd_per_gpu = 0;       // 0: the same
};
const core::OptionTable<NodeGroup>& node_group_options();

/// Identical GPUs in identical nodes. core::step::Configuration::gpu_of() returns the GPU of a kind.
struct MachineKind {
  NodeGroup node;  // except its `nodes`, which is not used
  GpuPower power;
  std::int64_t gpus = 0;
};

/// Nodes after the first group, in the order of the cluster.
struct OtherNodes {
  NodeGroup node;
  core::compute::Gpu gpu;
  GpuPower power;
};

/// Adds nodes to `config`, whose cluster must contain the first group only, and slows the GPUs that faults.slow_gpus
/// names. If all GPUs are identical, ExperimentConfig::machines stays empty. An error in faults.slow_gpus is stored in
/// ExperimentConfig::slow_gpus_error.
void add_machine_kinds(ExperimentConfig& config, const std::vector<OtherNodes>& others);

/// Gives the links of each GPU their own rates. `graph` must have been built with the fastest NICs of all kinds and the
/// nodes of the first group. A cable between two GPUs has the rate of the slower one.
void set_link_rates(const ExperimentConfig& config, core::network::Graph& graph);
/// Returns the part of the cache key that set_link_rates() depends on.
std::string link_rates_key(const ExperimentConfig& config);

}  // namespace manyworlds::experiments
