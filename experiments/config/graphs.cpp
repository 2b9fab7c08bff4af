// The cache's key is all that a topology's build() is given, and what is broken of it.
#include "experiments/config/graphs.hpp"

#include <algorithm>

#include "core/sharing/key.hpp"
#include "experiments/config/vocabulary.hpp"
#include "experiments/import/topology.hpp"
#include "topologies/parts/shared_nics.hpp"

namespace manyworlds::experiments {
namespace {

/// The files that the topology's options name, and what they hold.
std::vector<std::pair<std::string, std::string>> inputs_of(const World& world, const topologies::Topology& topology) {
  std::vector<std::pair<std::string, std::string>> made;
  for (const core::OptionInfo& info : topology.options) {
    const auto value = world.topology_options.find(info.name);
    if (!is_file(info) || value == world.topology_options.end()) continue;
    const std::string& path = std::get<std::string>(value->second);
    if (world.inputs && world.inputs->count(path) > 0) made.emplace_back(path, world.inputs->at(path));
  }
  return made;
}

void slow_down(core::network::Graph& graph, double share) {
  if (share == 1) return;
  for (core::network::Link& link : graph.links)
    if (link.kind == core::network::LinkKind::network)
      link.bits_per_second =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(link.bits_per_second) * share + 0.5));
}

std::string key_of(const World& world, const topologies::Site& site,
                   const std::vector<std::pair<std::string, std::string>>& inputs) {
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {}", world.topology, site.nodes, site.gpus_per_node,
                  static_cast<int>(site.scale_up), site.scale_up_bits_per_second, site.scale_up_latency_ps,
                  site.scale_up_planes, site.nic_bits_per_second, site.nic_latency_ps);
  if (site.scale_up == core::compute::ScaleUp::pcie || site.scale_up == core::compute::ScaleUp::nvlink_pairs)
    key += fmt::format(" pcie={}x{}", site.pcie_switch_gpus, site.host_bits_per_second);
  if (site.shared_nics > 0) key += fmt::format(" nics={} host={}", site.shared_nics, site.host_bits_per_second);
  key += fmt::format(" nic_share={}", nic_share(world));
  for (const auto& [name, value] : world.topology_options)
    key += fmt::format(" {}={}", name, std::visit([](const auto& held) { return fmt::format("{}", held); }, value));
  key += fmt::format(" down={} slow={}", world.faults.down, world.faults.slow);
  key += rates_key(world);
  for (const auto& [path, text] : inputs) key += " " + core::sharing::Writer("input").text(text).finish().hex();
  return key;
}

}  // namespace

double nic_share(const World& world) {
  const core::collective::Library& library = world.configuration.collectives;
  return library.protocol == core::collective::Protocol::calibrated ? library.calibration.nic_share : 1;
}

std::shared_ptr<const core::network::Graph> GraphCache::get(const World& world) {
  topologies::Site site = world.site();
  const auto& all = topologies::registry();
  const auto topology =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == world.topology; });
  MANYWORLDS_CHECK(topology != all.end(), "no topology '{}'", world.topology);
  const auto inputs = inputs_of(world, *topology);
  auto& graph = graphs_[key_of(world, site, inputs)];
  if (graph) return graph;
  if (!inputs.empty()) {
    auto file = import::parse_topology(inputs.front().second, inputs.front().first);
    site.given = std::make_shared<const topologies::GivenGraph>(
        topologies::GivenGraph{std::move(file.graph), file.gpus_per_server});
  }
  core::network::Graph made = topologies::build_fabric(*topology, world.topology_options, site);
  if (!site.given) give_rates(world, made);
  slow_down(made, nic_share(world));
  apply(world.faults, made);
  graph = std::make_shared<const core::network::Graph>(std::move(made));
  return graph;
}

}  // namespace manyworlds::experiments
