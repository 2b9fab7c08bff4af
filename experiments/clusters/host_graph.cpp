#include "experiments/clusters/host_graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "topologies/parts/connectivity.hpp"
#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;
using core::network::Graph;
using core::network::LinkKind;
using core::network::VertexKind;

constexpr core::Time kPcieLatency = core::kNanosecond;  // the rest of PCIe's is part of the measured NIC latency

std::int64_t bits_per_second(double gbps) {
  return static_cast<std::int64_t>(std::llround(gbps * 1e9));
}

std::vector<const Host*> first_hosts(const Fabric& fabric, std::int64_t count) {
  std::vector<const Host*> chosen;
  for (const Host& host : fabric.hosts)
    if (static_cast<std::int64_t>(chosen.size()) < count && is_complete(fabric, host)) chosen.push_back(&host);
  if (static_cast<std::int64_t>(chosen.size()) < count)
    throw InputError(
        fmt::format("cluster.nodes is {}, but its fabric has {} hosts with {} NICs, of {}; set it to {} or less", count,
                    chosen.size(), fabric.nics_per_host, fabric.hosts.size(), chosen.size()));
  return chosen;
}

std::vector<const Host*> named_hosts(const Fabric& fabric, const std::vector<std::string>& names) {
  std::map<std::string, const Host*> by_name;
  std::vector<std::string> known;
  for (const Host& host : fabric.hosts) {
    by_name.emplace(host.name, &host);
    if (is_complete(fabric, host)) known.push_back(host.name);
  }
  std::vector<const Host*> chosen;
  for (const std::string& name : names) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      if (known.size() > 20) known.resize(20);
      throw InputError(
          fmt::format("cluster.node_list: no host of the fabric is called '{}'{}", name, suggestion(name, known)));
    }
    if (!is_complete(fabric, *found->second))
      throw InputError(
          fmt::format("cluster.node_list: {} has {} NICs in the fabric, of {} that a host has; leave it out", name,
                      found->second->nics.size(), fabric.nics_per_host));
    chosen.push_back(found->second);
  }
  return chosen;
}

/// Cables each NIC to its GPU, or as many GPUs to one NIC as share it.
class HostCables {
 public:
  HostCables(Graph& graph, const topologies::FabricSpec& spec, std::uint32_t first_switch)
      : graph_(graph), spec_(spec), first_switch_(first_switch) {}

  void add(const Host& host, std::int64_t node) {
    const auto nics = static_cast<std::int64_t>(host.nics.size()), gpus = spec_.gpus_per_node;
    for (std::int64_t i = 0; i < nics; ++i) {
      const Nic& nic = host.nics[static_cast<std::size_t>(i)];
      std::uint32_t end = static_cast<std::uint32_t>(node * gpus + i * gpus / nics);
      if (nics < gpus) end = add_shared_nic(node, i, nics, bits_per_second(nic.gbps));
      graph_.add_cable(end, first_switch_ + nic.attached_to, LinkKind::network, bits_per_second(nic.gbps),
                       spec_.nic_latency_ps);
    }
  }

 private:
  std::uint32_t add_shared_nic(std::int64_t node, std::int64_t nic, std::int64_t nics, std::int64_t rate) {
    const std::uint32_t vertex = graph_.add_vertex(VertexKind::nic, fmt::format("nic{}", node * nics + nic));
    const std::int64_t gpus = spec_.gpus_per_node;
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu)
      if (gpu * nics / gpus == nic)
        graph_.add_cable(static_cast<std::uint32_t>(node * gpus + gpu), vertex, LinkKind::network,
                         std::max(spec_.host_bits_per_second, rate), kPcieLatency);
    return vertex;
  }

  Graph& graph_;
  const topologies::FabricSpec& spec_;
  std::uint32_t first_switch_;
};

}  // namespace

Graph build_host_graph(const Fabric& fabric, const topologies::FabricSpec& spec,
                       const std::vector<std::string>& nodes) {
  const auto hosts = nodes.empty() ? first_hosts(fabric, spec.nodes) : named_hosts(fabric, nodes);
  if (static_cast<std::int64_t>(hosts.size()) != spec.nodes)
    throw InputError(fmt::format("cluster.node_list has {} hosts, but cluster.nodes is {}", hosts.size(), spec.nodes));
  Graph graph = topologies::build_nodes(spec);
  topologies::check_limits(
      graph, static_cast<std::int64_t>(fabric.switches.size()) + spec.nodes * fabric.nics_per_host,
      static_cast<std::int64_t>(fabric.cables.size()) + spec.nodes * (fabric.nics_per_host + spec.gpus_per_node),
      "network");
  const auto first_switch = static_cast<std::uint32_t>(graph.vertices.size());
  for (const Switch& one : fabric.switches) graph.add_vertex(VertexKind::network_switch, one.name);
  for (const Cable& cable : fabric.cables)
    graph.add_cable(first_switch + cable.a, first_switch + cable.b, LinkKind::network, bits_per_second(cable.gbps),
                    spec.nic_latency_ps);
  HostCables cables(graph, spec, first_switch);
  for (std::size_t node = 0; node < hosts.size(); ++node) cables.add(*hosts[node], static_cast<std::int64_t>(node));
  if (const auto pair = topologies::find_unreachable_pair(graph))
    throw InputError(fmt::format("the fabric has no path from {} to {}",
                                 hosts[static_cast<std::size_t>(pair->first / spec.gpus_per_node)]->name,
                                 hosts[static_cast<std::size_t>(pair->second / spec.gpus_per_node)]->name));
  return graph;
}

}  // namespace manyworlds::experiments::clusters
