#include "topologies/parts/shared_nics.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/room.hpp"

namespace manyworlds::topologies {
namespace {

using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;
using core::network::VertexKind;

constexpr core::Time kHostLatency =
    core::kNanosecond;  // the way over PCIe is part of what a NIC's latency was measured as

/// `fabric`, whose hosts are NICs, behind the GPUs of `site`.
Graph behind_gpus(const Graph& fabric, const Site& site) {
  Graph made = place_nodes(site);
  made.gpus_relay = fabric.gpus_relay;
  require_room(made, static_cast<std::int64_t>(fabric.vertices.size()),
               static_cast<std::int64_t>(fabric.links.size() / 2) + made.gpus, "NIC");
  std::vector<std::uint32_t> place(fabric.vertices.size());
  for (std::uint32_t vertex = 0; vertex < place.size(); ++vertex)
    if (vertex < fabric.gpus)
      place[vertex] = made.add_vertex(VertexKind::nic, fmt::format("nic{}", vertex));
    else if (fabric.vertices[vertex] != VertexKind::scale_up_switch)
      place[vertex] = made.add_vertex(fabric.vertices[vertex], fabric.names[vertex]);
  for (std::size_t id = 0; id < fabric.links.size(); id += 2) {  // both directions of a cable follow one another
    Link link = fabric.links[id];
    if (link.kind == LinkKind::scale_up) continue;
    link.from = place[link.from], link.to = place[link.to];
    made.add_cable(link);
  }
  for (std::uint32_t gpu = 0; gpu < made.gpus; ++gpu) {
    const std::int64_t node = gpu / site.gpus_per_node, local = gpu % site.gpus_per_node;
    const std::int64_t nic = node * site.shared_nics + local * site.shared_nics / site.gpus_per_node;
    made.add_cable(gpu, place.at(static_cast<std::size_t>(nic)), LinkKind::network,
                   std::max(site.host_bits_per_second, site.nic_bits_per_second), kHostLatency);
  }
  return made;
}

}  // namespace

Graph build_fabric(const Topology& topology, const core::OptionSet& options, const Site& site) {
  if (site.shared_nics == 0) return topology.build(options, site);
  Site hosts = site;
  hosts.gpus_per_node = site.shared_nics;
  hosts.scale_up = core::compute::ScaleUp::nvswitch;  // which is left out again
  hosts.scale_up_planes = 1;
  return behind_gpus(topology.build(options, hosts), site);
}

}  // namespace manyworlds::topologies
