#include "experiments/config/machines.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments {
namespace {

using core::option;

/// A kind before its GPUs are told apart by their pace.
struct Nodes {
  NodeGroup node;
  core::compute::Gpu gpu;
  GpuPower power;
};

bool same_gpu(const Nodes& a, const Nodes& b) {
  const auto& figures = core::compute::gpu_options();
  return figures.read(a.gpu) == figures.read(b.gpu) && power_options().read(a.power) == power_options().read(b.power);
}

bool same(const Nodes& a, const Nodes& b) {
  NodeGroup one = a.node, other = b.node;
  one.nodes = other.nodes = 0;
  return same_gpu(a, b) && node_group_options().read(one) == node_group_options().read(other);
}

std::int64_t scaled(std::int64_t rate, std::int64_t part, std::int64_t whole) {
  return part == whole ? rate : std::max<std::int64_t>(1, static_cast<std::int64_t>(core::Wide{rate} * part / whole));
}

std::int64_t bits_per_second(double gbps) {
  return static_cast<std::int64_t>(std::llround(gbps * 1e9));
}

const core::compute::Gpu& gpu_of_kind(const World& world, std::uint32_t kind) {
  return world.configuration.gpu_of({0, 0, kind});
}

/// The paces that faults.slow_gpus names, by GPU; nothing where it is wrong.
std::map<std::int64_t, double> paces_of(World& world) {
  try {
    return slow_gpus(world.faults, world.cluster.nodes, world.cluster.gpus_per_node);
  } catch (const core::InputError& error) {
    world.machine_fault = error.what();
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
             "what one GPU costs to buy; not given: unknown, unless the GPU is that of the first nodes", {0.01, 1e9},
             "USD"),
  };
  return table;
}

void add_machines(World& world, const std::vector<OtherNodes>& others) {
  if (others.empty() && world.faults.slow_gpus.empty()) return;
  core::step::Configuration& made = world.configuration;
  const Nodes first{{world.cluster.nodes, world.cluster.nic_gbps, world.machine_power.host_power_w,
                     world.cluster.usd_per_gpu_hour, world.price.usd_per_gpu},
                    made.gpu,
                    world.power};
  std::vector<Nodes> kinds{first};
  std::vector<std::size_t> kind_of_node(static_cast<std::size_t>(std::max<std::int64_t>(0, first.node.nodes)), 0);
  for (const OtherNodes& other : others) {
    Nodes one{other.node, other.gpu, other.power};
    if (one.node.nic_gbps == 0) one.node.nic_gbps = first.node.nic_gbps;
    if (one.node.host_power_w == 0) one.node.host_power_w = first.node.host_power_w;
    const bool priced = one.node.usd_per_gpu_hour > 0 || one.node.usd_per_gpu > 0;
    if (!priced && same_gpu(one, first))
      one.node.usd_per_gpu_hour = first.node.usd_per_gpu_hour, one.node.usd_per_gpu = first.node.usd_per_gpu;
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Nodes& kind) { return same(kind, one); });
    const auto number = static_cast<std::size_t>(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(one);
    kind_of_node.insert(kind_of_node.end(), static_cast<std::size_t>(one.node.nodes), number);
    world.cluster.nodes += one.node.nodes;
  }
  const std::map<std::int64_t, double> paces = paces_of(world);
  if (kinds.size() == 1 && paces.empty()) return;

  std::map<std::pair<std::size_t, double>, std::uint32_t> numbers{{{0, 1.0}, 0}};
  world.machines = {{first.node, first.power, 0}};
  for (std::int64_t gpu = 0; gpu < world.cluster.gpus(); ++gpu) {
    const std::size_t kind = kind_of_node[static_cast<std::size_t>(gpu / world.cluster.gpus_per_node)];
    const auto pace = paces.find(gpu);
    const double at = pace == paces.end() ? 1 : pace->second;
    const auto [slot, is_new] = numbers.try_emplace({kind, at}, static_cast<std::uint32_t>(numbers.size()));
    if (is_new) {
      made.other_gpus.push_back(kinds[kind].gpu);
      made.other_gpus.back().pace = at;
      world.machines.push_back({kinds[kind].node, kinds[kind].power, 0});
    }
    made.kind_of_gpu.push_back(slot->second);
    ++world.machines[slot->second].gpus;
  }
}

void give_rates(const World& world, core::network::Graph& graph) {
  if (world.machines.empty()) return;
  const topologies::Site site = world.site();
  const std::vector<std::uint32_t>& kind_of = world.configuration.kind_of_gpu;
  for (core::network::Link& link : graph.links) {
    std::optional<std::int64_t> nic;
    for (const std::uint32_t end : {link.from, link.to}) {
      if (end >= graph.gpus) continue;
      const std::uint32_t kind = kind_of.at(end);
      const std::int64_t rate = bits_per_second(world.machines[kind].node.nic_gbps);
      nic = std::min(nic.value_or(rate), rate);
      if (link.kind == core::network::LinkKind::scale_up && end == std::min(link.from, link.to)) {
        const core::compute::Gpu& gpu = gpu_of_kind(world, kind);
        link.bits_per_second =
            scaled(link.bits_per_second, bits_per_second(8 * gpu.scale_up_gb_per_s), site.scale_up_bits_per_second);
        link.latency_ps = core::round_half_up(gpu.scale_up_latency_us * static_cast<double>(core::kMicrosecond));
      }
    }
    if (link.kind == core::network::LinkKind::network && nic)
      link.bits_per_second = scaled(link.bits_per_second, *nic, site.nic_bits_per_second);
  }
}

std::string rates_key(const World& world) {
  if (world.machines.empty()) return {};
  std::string key = " machines";
  for (std::uint32_t kind = 0; kind < world.machines.size(); ++kind) {
    const core::compute::Gpu& gpu = gpu_of_kind(world, kind);
    key += fmt::format(" {}/{}/{}", world.machines[kind].node.nic_gbps, gpu.scale_up_gb_per_s, gpu.scale_up_latency_us);
  }
  return key + fmt::format(" {}", fmt::join(world.configuration.kind_of_gpu, ","));
}

}  // namespace manyworlds::experiments
