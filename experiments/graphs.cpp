// The cache's key is all that a topology's build() is given.
#include "experiments/graphs.hpp"

namespace manyworlds::experiments {
namespace {

std::string key_of(const World& world, const topologies::Site& site) {
  std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {}", world.topology, site.nodes, site.gpus_per_node,
                  static_cast<int>(site.scale_up), site.scale_up_bits_per_second, site.scale_up_latency_ps,
                  site.scale_up_planes, site.nic_bits_per_second, site.nic_latency_ps);
  for (const auto& [name, value] : world.topology_options)
    key += fmt::format(" {}={}", name, std::visit([](const auto& held) { return fmt::format("{}", held); }, value));
  return key;
}

}  // namespace

std::shared_ptr<const core::network::Graph> GraphCache::get(const World& world) {
  const topologies::Site site = world.site();
  auto& graph = graphs_[key_of(world, site)];
  if (graph) return graph;
  for (const topologies::Topology& topology : topologies::registry())
    if (topology.name == world.topology)
      graph = std::make_shared<const core::network::Graph>(topology.build(world.topology_options, site));
  MANYWORLDS_CHECK(graph, "no topology '{}'", world.topology);
  return graph;
}

}  // namespace manyworlds::experiments
