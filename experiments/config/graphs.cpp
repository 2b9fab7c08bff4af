// Builds and caches graphs. The cache key consists of all inputs of a topology's build() and of the faults.
#include "experiments/config/graphs.hpp"

#include <algorithm>
#include <cmath>

#include "core/sharing/key.hpp"
#include "experiments/clusters/fabric_file.hpp"
#include "experiments/clusters/host_graph.hpp"
#include "experiments/clusters/node_list.hpp"
#include "experiments/import/topology.hpp"
#include "experiments/keys/section.hpp"
#include "topologies/parts/shared_nics.hpp"

namespace manyworlds::experiments {
namespace {

/// Returns the files that the topology's options name, as path and contents.
std::vector<std::pair<std::string, std::string>> inputs_of(const ExperimentConfig& config,
                                                           const topologies::Topology& topology) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const core::OptionInfo& info : topology.options) {
    const auto value = config.topology_options.find(info.name);
    if (!is_file(info) || value == config.topology_options.end()) continue;
    const std::string& path = std::get<std::string>(value->second);
    if (config.inputs && config.inputs->count(path) > 0) result.emplace_back(path, config.inputs->at(path));
  }
  return result;
}

void scale_rates(core::network::Graph& graph, core::network::LinkKind kind, double share) {
  if (share == 1) return;
  for (core::network::Link& link : graph.links)
    if (link.kind == kind)
      link.bits_per_second =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(link.bits_per_second) * share + 0.5));
}

std::string key_of(const ExperimentConfig& config, const topologies::FabricSpec& fabric_spec,
                   const std::vector<std::pair<std::string, std::string>>& inputs) {
  std::string key = fmt::format(
      "{} {} {} {} {} {} {} {} {}", config.topology, fabric_spec.nodes, fabric_spec.gpus_per_node,
      static_cast<int>(fabric_spec.scale_up), fabric_spec.scale_up_bits_per_second, fabric_spec.scale_up_latency_ps,
      fabric_spec.scale_up_planes, fabric_spec.nic_bits_per_second, fabric_spec.nic_latency_ps);
  if (fabric_spec.scale_up == core::compute::ScaleUp::pcie ||
      fabric_spec.scale_up == core::compute::ScaleUp::nvlink_pairs)
    key += fmt::format(" pcie={}x{}", fabric_spec.pcie_switch_gpus, fabric_spec.host_bits_per_second);
  if (fabric_spec.shared_nics > 0)
    key += fmt::format(" nics={} host={}", fabric_spec.shared_nics, fabric_spec.host_bits_per_second);
  key += fmt::format(" nic_share={} link_share={}", nic_share(config), link_share(config));
  for (const auto& [name, value] : config.topology_options)
    key += fmt::format(" {}={}", name, std::visit([](const auto& held) { return fmt::format("{}", held); }, value));
  key += fmt::format(" down={} slow={}", config.faults.down, config.faults.slow);
  key += fmt::format(" hosts={}", config.cluster.node_list);
  key += link_rates_key(config);
  for (const auto& [path, text] : inputs) key += " " + core::sharing::KeyWriter("input").text(text).finish().hex();
  return key;
}

/// Returns the graph of a cluster file. Its cables have the file's rates, which cluster.nic_gbps must repeat.
core::network::Graph host_graph(const ExperimentConfig& config, const topologies::FabricSpec& spec,
                                const std::string& path, const std::string& text) {
  const clusters::Fabric fabric = clusters::parse_fabric_file(text, path);
  const auto nics = static_cast<double>(fabric.nics_per_host), gpus = static_cast<double>(spec.gpus_per_node);
  const double gbps = fabric.usual_nic_gbps() * (nics < gpus ? 1 : nics / gpus);
  if (std::abs(static_cast<double>(spec.nic_bits_per_second) - gbps * 1e9) > 1e-6 * gbps * 1e9)
    throw core::InputError(
        fmt::format("a host of {} has {} NICs of {} Gb/s for {} GPUs, but cluster.nic_gbps is {} and "
                    "cluster.nics_per_node {}; take "
                    "them from the file",
                    path, fabric.nics_per_host, fabric.usual_nic_gbps(), spec.gpus_per_node, config.cluster.nic_gbps,
                    config.cluster.nics_per_node));
  return clusters::build_host_graph(fabric, spec, clusters::expand_node_list(config.cluster.node_list));
}

}  // namespace

double nic_share(const ExperimentConfig& config) {
  const core::collective::Library& library = config.configuration.collectives;
  return library.protocol == core::collective::Protocol::calibrated ? library.calibration.nic_share : 1;
}

double link_share(const ExperimentConfig& config) {
  const core::collective::Library& library = config.configuration.collectives;
  const double share = library.protocol == core::collective::Protocol::calibrated
                           ? library.calibration.link_share_in(library.version)
                           : 1;
  return share > 0 ? share : 1;
}

bool GraphCache::Source::is_of(const ExperimentConfig& config, const topologies::FabricSpec& fabric_spec) const {
  return config.machines.empty() && config.topology == topology && config.topology_options == options &&
         config.faults.down == down && config.faults.slow == slow && config.cluster.node_list == hosts &&
         config.inputs == inputs && fabric_spec == spec && experiments::nic_share(config) == nic_share &&
         experiments::link_share(config) == link_share;
}

std::shared_ptr<const core::network::Graph> GraphCache::get(const ExperimentConfig& config) {
  topologies::FabricSpec fabric_spec = config.fabric_spec();
  if (last_ && last_->is_of(config, fabric_spec)) return last_graph_;
  last_.reset();
  Source source{config.topology,          config.faults.down,      config.faults.slow,
                config.cluster.node_list, config.topology_options, fabric_spec,
                nic_share(config),        link_share(config),      config.inputs};
  last_graph_ = find_or_build(config, std::move(fabric_spec));
  if (config.machines.empty()) last_ = std::move(source);
  return last_graph_;
}

std::shared_ptr<const core::network::Graph> GraphCache::find_or_build(const ExperimentConfig& config,
                                                                      topologies::FabricSpec fabric_spec) {
  const auto& all = topologies::registry();
  const auto topology =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == config.topology; });
  MANYWORLDS_CHECK(topology != all.end(), "no topology '{}'", config.topology);
  const auto inputs = inputs_of(config, *topology);
  auto& graph = graphs_[key_of(config, fabric_spec, inputs)];
  if (graph) return graph;
  const bool of_hosts = !inputs.empty() && clusters::has_fabric(inputs.front().second);
  if (!of_hosts && !config.cluster.node_list.empty())
    throw core::InputError("cluster.node_list names hosts of a cluster file, and the topology is none; leave it out");
  if (!inputs.empty() && !of_hosts) {
    auto file = import::parse_topology(inputs.front().second, inputs.front().first);
    fabric_spec.loaded_graph = std::make_shared<const topologies::LoadedGraph>(
        topologies::LoadedGraph{std::move(file.graph), file.gpus_per_server});
  }
  core::network::Graph result = of_hosts ? host_graph(config, fabric_spec, inputs.front().first, inputs.front().second)
                                         : topologies::build_fabric(*topology, config.topology_options, fabric_spec);
  if (!fabric_spec.loaded_graph) set_link_rates(config, result);
  scale_rates(result, core::network::LinkKind::network, nic_share(config));
  scale_rates(result, core::network::LinkKind::scale_up, link_share(config));
  apply_faults(config.faults, result);
  graph = std::make_shared<const core::network::Graph>(std::move(result));
  return graph;
}

}  // namespace manyworlds::experiments
