// Nodes: NVSwitch systems as one switch per node with a full-rate cable per GPU, or as planes of switches that share
// the rate; a full mesh in which each GPU splits its rate evenly over its peers; a tree of PCIe switches; or pairs with
// a bridge between them, on such a tree.
#include "topologies/parts/nodes.hpp"

#include <vector>

#include "core/base/error.hpp"
#include "topologies/parts/room.hpp"

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
  if (site.pcie_switch_gpus < 1)
    throw InputError(fmt::format("the GPU's pcie_switch_gpus is {}; it must be 1 or more", site.pcie_switch_gpus));
  if (site.gpus_per_node > 1 && site.scale_up == ScaleUp::nvlink_pairs && site.host_bits_per_second < 1)
    throw InputError("pairs of GPUs reach each other over PCIe: give the GPU's host_gb_per_s");
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

std::int64_t pcie_switches(const Site& site) {
  return (site.gpus_per_node + site.pcie_switch_gpus - 1) / site.pcie_switch_gpus;
}

/// GPUs on switches and these on the root, all at one rate.
void add_pcie(Graph& graph, const Site& site, std::uint32_t first, std::int64_t node, std::int64_t rate) {
  const std::int64_t switches = pcie_switches(site);
  std::vector<std::uint32_t> ids;
  for (std::int64_t i = 0; i < switches; ++i)
    ids.push_back(graph.add_vertex(VertexKind::scale_up_switch, fmt::format("pcie{}", node * switches + i)));
  for (std::uint32_t i = 0; i < site.gpus_per_node; ++i)
    graph.add_cable(first + i, ids[static_cast<std::size_t>(i / site.pcie_switch_gpus)], LinkKind::scale_up, rate,
                    site.scale_up_latency_ps);
  if (switches == 1) return;
  const std::uint32_t root = graph.add_vertex(VertexKind::scale_up_switch, fmt::format("root{}", node));
  for (const std::uint32_t id : ids) graph.add_cable(id, root, LinkKind::scale_up, rate, site.scale_up_latency_ps);
}

void add_bridged_pairs(Graph& graph, const Site& site, std::uint32_t first, std::int64_t node) {
  for (std::uint32_t i = 0; i + 1 < site.gpus_per_node; i += 2)
    graph.add_cable(first + i, first + i + 1, LinkKind::scale_up, site.scale_up_bits_per_second,
                    site.scale_up_latency_ps);
  add_pcie(graph, site, first, node, site.host_bits_per_second);
}

std::int64_t cables_of(const Site& site) {
  const std::int64_t gpus = site.nodes * site.gpus_per_node;
  if (site.scale_up == ScaleUp::nvswitch) return gpus * site.scale_up_planes;
  if (site.scale_up == ScaleUp::full_mesh) return gpus * (site.gpus_per_node - 1) / 2;
  return 2 * gpus + site.nodes * pcie_switches(site);
}

void add_scale_up(Graph& graph, const Site& site, std::uint32_t first, std::int64_t node) {
  switch (site.scale_up) {
    case ScaleUp::nvswitch:
      return add_nvswitches(graph, site, first, node);
    case ScaleUp::full_mesh:
      return add_full_mesh(graph, site, first);
    case ScaleUp::pcie:
      return add_pcie(graph, site, first, node, site.scale_up_bits_per_second);
    case ScaleUp::nvlink_pairs:
      return add_bridged_pairs(graph, site, first, node);
  }
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
    add_scale_up(graph, site, static_cast<std::uint32_t>(node * site.gpus_per_node), node);
  }
  return graph;
}

}  // namespace manyworlds::topologies
