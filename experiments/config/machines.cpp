#include "experiments/config/machines.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {
namespace {

using core::option;

/// A kind of node, before its GPUs are distinguished by speed.
struct NodeKind {
  NodeGroup node;
  core::compute::Gpu gpu;
  GpuPower power;
};

bool same_gpu(const NodeKind& a, const NodeKind& b) {
  const auto& figures = core::compute::gpu_options();
  return figures.read(a.gpu) == figures.read(b.gpu) && power_options().read(a.power) == power_options().read(b.power);
}

bool same_nodes(const NodeKind& a, const NodeKind& b) {
  NodeGroup one = a.node, other = b.node;
  one.nodes = other.nodes = 0;
  return same_gpu(a, b) && node_group_options().read(one) == node_group_options().read(other);
}

std::int64_t scaled(std::int64_t rate, std::int64_t part, std::int64_t whole) {
  return part == whole ? rate : std::max<std::int64_t>(1, static_cast<std::int64_t>(core::Int128{rate} * part / whole));
}

std::int64_t bits_per_second(double gbps) {
  return static_cast<std::int64_t>(std::llround(gbps * 1e9));
}

const core::compute::Gpu& gpu_of_kind(const ExperimentConfig& config, std::uint32_t kind) {
  return config.configuration.gpu_of({0, 0, kind});
}

/// Returns the speed factors in faults.slow_gpus by GPU; if they are invalid, stores the error in `config` and returns
/// none.
std::map<std::int64_t, double> speed_factors_of(ExperimentConfig& config) {
  try {
    return slow_gpus(config.faults, config.cluster.nodes, config.cluster.gpus_per_node);
  } catch (const core::InputError& error) {
    config.slow_gpus_error = error.what();
    return {};
  }
}

}  // namespace

const core::OptionTable<NodeGroup>& node_group_options() {
  static const core::OptionTable<NodeGroup> table{
      option("nodes", &NodeGroup::nodes, "machines of this kind, behind those before", {1, 131'072}),
      option("nic_gbps", &NodeGroup::nic_gbps,
             "network bandwidth of one GPU, one direction; not given: as of the first nodes", {0.001, 1e6}, "Gb/s"),
      option("host_power_w", &NodeGroup::host_power_w,
             "power of one node without its GPUs; not given: as of the first nodes", {0.001, 1e7}, "W"),
      option("usd_per_gpu_hour", &NodeGroup::usd_per_gpu_hour,
             "price of one GPU for an hour; not given: unknown, unless the GPU is that of the first nodes",
             {0.000001, 1e6}, "USD/h"),
      option("usd_per_gpu", &NodeGroup::usd_per_gpu,
             "purchase price of one GPU; not given: unknown, unless the GPU is that of the first nodes", {0.01, 1e9},
             "USD"),
  };
  return table;
}

void add_machine_kinds(ExperimentConfig& config, const std::vector<OtherNodes>& others) {
  if (others.empty() && config.faults.slow_gpus.empty()) return;
  core::step::Configuration& configuration = config.configuration;
  const NodeKind first{{config.cluster.nodes, config.cluster.nic_gbps, config.machine_power.host_power_w,
                        config.cluster.usd_per_gpu_hour, config.price.usd_per_gpu},
                       configuration.gpu,
                       config.power};
  std::vector<NodeKind> kinds{first};
  std::vector<std::size_t> kind_of_node(static_cast<std::size_t>(std::max<std::int64_t>(0, first.node.nodes)), 0);
  for (const OtherNodes& other : others) {
    NodeKind one{other.node, other.gpu, other.power};
    if (one.node.nic_gbps == 0) one.node.nic_gbps = first.node.nic_gbps;
    if (one.node.host_power_w == 0) one.node.host_power_w = first.node.host_power_w;
    const bool priced = one.node.usd_per_gpu_hour > 0 || one.node.usd_per_gpu > 0;
    if (!priced && same_gpu(one, first))
      one.node.usd_per_gpu_hour = first.node.usd_per_gpu_hour, one.node.usd_per_gpu = first.node.usd_per_gpu;
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&](const NodeKind& kind) { return same_nodes(kind, one); });
    const auto number = static_cast<std::size_t>(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(one);
    kind_of_node.insert(kind_of_node.end(), static_cast<std::size_t>(one.node.nodes), number);
    config.cluster.nodes += one.node.nodes;
  }
  const std::map<std::int64_t, double> speed_factors = speed_factors_of(config);
  if (kinds.size() == 1 && speed_factors.empty()) return;

  std::map<std::pair<std::size_t, double>, std::uint32_t> kind_numbers{{{0, 1.0}, 0}};
  config.machines = {{first.node, first.power, 0}};
  for (std::int64_t gpu = 0; gpu < config.cluster.gpus(); ++gpu) {
    const std::size_t kind = kind_of_node[static_cast<std::size_t>(gpu / config.cluster.gpus_per_node)];
    const auto speed_factor = speed_factors.find(gpu);
    const double at = speed_factor == speed_factors.end() ? 1 : speed_factor->second;
    const auto [slot, is_new] = kind_numbers.try_emplace({kind, at}, static_cast<std::uint32_t>(kind_numbers.size()));
    if (is_new) {
      configuration.other_gpus.push_back(kinds[kind].gpu);
      configuration.other_gpus.back().speed_factor = at;
      config.machines.push_back({kinds[kind].node, kinds[kind].power, 0});
    }
    configuration.kind_of_gpu.push_back(slot->second);
    ++config.machines[slot->second].gpus;
  }
}

void set_link_rates(const ExperimentConfig& config, core::network::Graph& graph) {
  if (config.machines.empty()) return;
  const topologies::FabricSpec fabric_spec = config.fabric_spec();
  const std::vector<std::uint32_t>& kind_of = config.configuration.kind_of_gpu;
  for (core::network::Link& link : graph.links) {
    std::optional<std::int64_t> nic;
    for (const std::uint32_t end : {link.from, link.to}) {
      if (end >= graph.gpus) continue;
      const std::uint32_t kind = kind_of.at(end);
      const std::int64_t rate = bits_per_second(config.machines[kind].node.nic_gbps);
      nic = std::min(nic.value_or(rate), rate);
      if (link.kind == core::network::LinkKind::scale_up && end == std::min(link.from, link.to)) {
        const core::compute::Gpu& gpu = gpu_of_kind(config, kind);
        link.bits_per_second = scaled(link.bits_per_second, bits_per_second(8 * gpu.scale_up_gb_per_s),
                                      fabric_spec.scale_up_bits_per_second);
        link.latency_ps = core::round_half_up(gpu.scale_up_latency_us * static_cast<double>(core::kMicrosecond));
      }
    }
    if (link.kind == core::network::LinkKind::network && nic)
      link.bits_per_second = scaled(link.bits_per_second, *nic, fabric_spec.nic_bits_per_second);
  }
}

std::string link_rates_key(const ExperimentConfig& config) {
  if (config.machines.empty()) return {};
  std::string key = " machines";
  for (std::uint32_t kind = 0; kind < config.machines.size(); ++kind) {
    const core::compute::Gpu& gpu = gpu_of_kind(config, kind);
    key +=
        fmt::format(" {}/{}/{}", config.machines[kind].node.nic_gbps, gpu.scale_up_gb_per_s, gpu.scale_up_latency_us);
  }
  return key + fmt::format(" {}", fmt::join(config.configuration.kind_of_gpu, ","));
}

}  // namespace manyworlds::experiments
