#include "topologies/parts/shared_nics.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"

namespace manyworlds::topologies {
namespace {

using core::network::Graph;
using core::network::Link;
using core::network::LinkKind;
using core::network::VertexKind;

constexpr core::Time kHostLatency = core::kNanosecond;  // the PCIe latency is part of the measured NIC latency

/// Returns `fabric`, whose hosts are NICs, with the GPUs of `spec` connected to the NICs.
Graph attach_to_gpus(const Graph& fabric, const FabricSpec& spec) {
  Graph graph = build_nodes(spec);
  graph.gpus_relay = fabric.gpus_relay;
  check_limits(graph, static_cast<std::int64_t>(fabric.vertices.size()),
               static_cast<std::int64_t>(fabric.links.size() / 2) + graph.gpus, "NIC");
  std::vector<std::uint32_t> new_vertex(fabric.vertices.size());
  for (std::uint32_t vertex = 0; vertex < new_vertex.size(); ++vertex)
    if (vertex < fabric.gpus)
      new_vertex[vertex] = graph.add_vertex(VertexKind::nic, fmt::format("nic{}", vertex));
    else if (fabric.vertices[vertex] != VertexKind::scale_up_switch)
      new_vertex[vertex] = graph.add_vertex(fabric.vertices[vertex], fabric.names[vertex]);
  for (std::size_t id = 0; id < fabric.links.size(); id += 2) {  // the two directions of a cable are adjacent
    Link link = fabric.links[id];
    if (link.kind == LinkKind::scale_up) continue;
    link.from = new_vertex[link.from], link.to = new_vertex[link.to];
    graph.add_cable(link);
  }
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu) {
    const std::int64_t node = gpu / spec.gpus_per_node, local = gpu % spec.gpus_per_node;
    const std::int64_t nic = node * spec.shared_nics + local * spec.shared_nics / spec.gpus_per_node;
    graph.add_cable(gpu, new_vertex.at(static_cast<std::size_t>(nic)), LinkKind::network,
                    std::max(spec.host_bits_per_second, spec.nic_bits_per_second), kHostLatency);
  }
  return graph;
}

}  // namespace

Graph build_fabric(const Topology& topology, const core::OptionSet& options, const FabricSpec& spec) {
  if (spec.shared_nics == 0) return topology.build(options, spec);
  FabricSpec nic_spec = spec;
  nic_spec.gpus_per_node = spec.shared_nics;
  nic_spec.scale_up = core::compute::ScaleUp::nvswitch;  // not used: the NICs' scale-up links are dropped
  nic_spec.scale_up_planes = 1;
  return attach_to_gpus(topology.build(options, nic_spec), spec);
}

}  // namespace manyworlds::topologies
