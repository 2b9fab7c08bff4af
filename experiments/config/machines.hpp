// Nodes of several kinds in one cluster, and GPUs that are slow: from what settings tell to the kinds that core knows.
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

struct World;

/// Where settings tell of nodes behind the first ones: cluster.second, cluster.third.
inline constexpr std::array<const char*, 2> kNodeGroups{"second", "third"};

struct NodeGroup {
  std::int64_t nodes = 0;       // absent until given
  double nic_gbps = 0;          // of a GPU, one direction; absent: as of the first nodes
  double host_power_w = 0;      // the same
  double usd_per_gpu_hour = 0;  // absent: as of the first nodes, if the GPU is theirs in every figure
  double usd_per_gpu = 0;       // the same
};
const core::OptionTable<NodeGroup>& node_group_options();

/// GPUs that run alike, in nodes that are alike. Their figures are core::step::Configuration::gpu_of() the kind.
struct MachineKind {
  NodeGroup node;  // its `nodes` counts no more
  GpuPower power;
  std::int64_t gpus = 0;
};

/// Nodes that stand behind the first ones, in the order of the cluster.
struct OtherNodes {
  NodeGroup node;
  core::compute::Gpu gpu;
  GpuPower power;
};

/// Adds those nodes to the world, whose cluster is that of the first ones alone, and makes GPUs slow that
/// faults.slow_gpus names. Where all run alike there is one kind, and no word of it. What faults.slow_gpus has wrong
/// stands in World::machine_fault.
void add_machines(World& world, const std::vector<OtherNodes>& others);

/// `graph` is that of a site whose NICs are the fastest of all kinds and whose nodes are the first ones: gives each
/// GPU's links its own rates. Cables between GPUs run at the slower end's.
void give_rates(const World& world, core::network::Graph& graph);
/// What give_rates() depends on.
std::string rates_key(const World& world);

}  // namespace manyworlds::experiments
