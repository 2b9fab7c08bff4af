// Nodes: NVSwitch systems as one switch per node with a full-rate cable per GPU, or as planes of switches that share
// the rate; or a full mesh in which each GPU splits its rate evenly over its peers.
#include "topologies/nodes.hpp"

#include "core/error.hpp"
#include "topologies/room.hpp"

namespace manyworlds::topologies {

namespace {

using core::InputError;
using core::compute::ScaleUp;
using core::network::Graph;
using core::network::LinkKind;
using core::network::VertexKind;

constexpr std::int64_t kMostGpus = 1 << 20;  // far above any cluster that exists; catches slipped digits

void check(const Site& site) {
  if (site.nodes < 1 || site.gpus_per_node < 1 || site.nodes > kMostGpus || site.gpus_per_node > kMostGpus / site.nodes)
    throw InputError(fmt::format("cluster.nodes x cluster.gpus_per_node is {} x {}; it must be from 1 to {} GPUs",
                                 site.nodes, site.gpus_per_node, kMostGpus));
  if (site.nic_bits_per_second < 1 || site.nic_latency_ps < 1)
    throw InputError(
        "the cluster's NIC rate and latency must be greater than 0: give cluster.nic_gbps and its latency");
  if (site.gpus_per_node > 1 && (site.scale_up_bits_per_second < site.gpus_per_node || site.scale_up_latency_ps < 1))
    throw InputError(
        "nothing is known of the links inside a node: give the GPU's scale_up_gb_per_s and scale_up_latency_us");
  if (site.scale_up_planes < 1 || site.scale_up_planes > site.scale_up_bits_per_second + 1)
    throw InputError(fmt::format("the GPU's scale_up_planes is {}; it must be 1 or more", site.scale_up_planes));
  if (site.scale_up_planes > 1 && site.scale_up != ScaleUp::nvswitch)
    throw InputError("the GPU's scale_up_planes are planes of switches; they need scale_up: nvswitch");
}

void add_nvswitches(Graph& graph, const Site& site, std::uint32_t first, std::int64_t node) {
  const std::int64_t rate = site.scale_up_bits_per_second / site.scale_up_planes;  // to the bit per second
  for (std::int64_t plane = 0; plane < site.scale_up_planes; ++plane) {
    const std::string name = fmt::format("nvswitch{}", node * site.scale_up_planes + plane);
    const std::uint32_t nvswitch = graph.add_vertex(VertexKind::scale_up_switch, name);
    for (std::uint32_t i = 0; i < site.gpus_per_node; ++i)
      graph.add_cable(first + i, nvswitch, LinkKind::scale_up, rate, site.scale_up_latency_ps);
  }
}

void add_full_mesh(Graph& graph, const Site& site, std::uint32_t first) {
  const std::int64_t rate = site.scale_up_bits_per_second / (site.gpus_per_node - 1);  // to the bit per second
  for (std::uint32_t i = 0; i < site.gpus_per_node; ++i)
    for (std::uint32_t j = i + 1; j < site.gpus_per_node; ++j)
      graph.add_cable(first + i, first + j, LinkKind::scale_up, rate, site.scale_up_latency_ps);
}

std::int64_t cables_of(const Site& site) {
  if (site.scale_up == ScaleUp::nvswitch) return site.nodes * site.gpus_per_node * site.scale_up_planes;
  return site.nodes * site.gpus_per_node * (site.gpus_per_node - 1) / 2;
}

}  // namespace

Graph place_nodes(const Site& site) {
  check(site);
  Graph graph;
  require_room(graph, site.nodes * site.gpus_per_node, cables_of(site), "scale-up");
  for (std::int64_t gpu = 0; gpu < site.nodes * site.gpus_per_node; ++gpu)
    graph.add_vertex(VertexKind::gpu, fmt::format("gpu{}", gpu));
  if (site.gpus_per_node == 1) return graph;
  for (std::int64_t node = 0; node < site.nodes; ++node) {
    const auto first = static_cast<std::uint32_t>(node * site.gpus_per_node);
    if (site.scale_up == ScaleUp::nvswitch)
      add_nvswitches(graph, site, first, node);
    else
      add_full_mesh(graph, site, first);
  }
  return graph;
}

}  // namespace manyworlds::topologies
