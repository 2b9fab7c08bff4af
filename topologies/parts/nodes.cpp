// Nodes: one NVSwitch per node with a full-rate cable per GPU, or planes of NVSwitches that share the rate; a full mesh
// in which each GPU divides its rate evenly among its peers; a tree of PCIe switches; or pairs of GPUs with a bridge,
// on such a tree.
#include "topologies/parts/nodes.hpp"

#include <vector>

#include "core/base/error.hpp"
#include "topologies/parts/limits.hpp"

namespace manyworlds::topologies {

namespace {

using core::InputError;
using core::compute::ScaleUp;
using core::network::Graph;
using core::network::LinkKind;
using core::network::VertexKind;

constexpr std::int64_t kMaxGpus = 1 << 20;  // far above any existing cluster; catches mistyped digits

void check_spec(const FabricSpec& spec) {
  if (spec.nodes < 1 || spec.gpus_per_node < 1 || spec.nodes > kMaxGpus || spec.gpus_per_node > kMaxGpus / spec.nodes)
    throw InputError(fmt::format("cluster.nodes x cluster.gpus_per_node is {} x {}; it must be from 1 to {} GPUs",
                                 spec.nodes, spec.gpus_per_node, kMaxGpus));
  if (spec.nic_bits_per_second < 1 || spec.nic_latency_ps < 1)
    throw InputError(
        "the cluster's NIC rate and latency must be greater than 0: give cluster.nic_gbps and its latency");
  if (spec.gpus_per_node > 1 && (spec.scale_up_bits_per_second < spec.gpus_per_node || spec.scale_up_latency_ps < 1))
    throw InputError("the links inside a node are unknown: set the GPU's scale_up_gb_per_s and scale_up_latency_us");
  if (spec.scale_up_planes < 1 || spec.scale_up_planes > spec.scale_up_bits_per_second + 1)
    throw InputError(fmt::format("the GPU's scale_up_planes is {}; it must be 1 or more", spec.scale_up_planes));
  if (spec.scale_up_planes > 1 && spec.scale_up != ScaleUp::nvswitch)
    throw InputError("the GPU's scale_up_planes are planes of switches; they need scale_up: nvswitch");
  if (spec.pcie_switch_gpus < 1)
    throw InputError(fmt::format("the GPU's pcie_switch_gpus is {}; it must be 1 or more", spec.pcie_switch_gpus));
  if (spec.gpus_per_node > 1 && spec.scale_up == ScaleUp::nvlink_pairs && spec.host_bits_per_second < 1)
    throw InputError("pairs of GPUs reach each other over PCIe: give the GPU's host_gb_per_s");
}

void add_nvswitches(Graph& graph, const FabricSpec& spec, std::uint32_t first, std::int64_t node) {
  const std::int64_t rate = spec.scale_up_bits_per_second / spec.scale_up_planes;  // rounded down
  for (std::int64_t plane = 0; plane < spec.scale_up_planes; ++plane) {
    const std::string name = fmt::format("nvswitch{}", node * spec.scale_up_planes + plane);
    const std::uint32_t nvswitch = graph.add_vertex(VertexKind::scale_up_switch, name);
    for (std::uint32_t i = 0; i < spec.gpus_per_node; ++i)
      graph.add_cable(first + i, nvswitch, LinkKind::scale_up, rate, spec.scale_up_latency_ps);
  }
}

void add_full_mesh(Graph& graph, const FabricSpec& spec, std::uint32_t first) {
  const std::int64_t rate = spec.scale_up_bits_per_second / (spec.gpus_per_node - 1);  // rounded down
  for (std::uint32_t i = 0; i < spec.gpus_per_node; ++i)
    for (std::uint32_t j = i + 1; j < spec.gpus_per_node; ++j)
      graph.add_cable(first + i, first + j, LinkKind::scale_up, rate, spec.scale_up_latency_ps);
}

std::int64_t pcie_switch_count(const FabricSpec& spec) {
  return (spec.gpus_per_node + spec.pcie_switch_gpus - 1) / spec.pcie_switch_gpus;
}

/// Adds a PCIe tree: GPUs on switches, and switches on the root complex, all at one rate.
void add_pcie_tree(Graph& graph, const FabricSpec& spec, std::uint32_t first, std::int64_t node, std::int64_t rate) {
  const std::int64_t switches = pcie_switch_count(spec);
  std::vector<std::uint32_t> ids;
  for (std::int64_t i = 0; i < switches; ++i)
    ids.push_back(graph.add_vertex(VertexKind::scale_up_switch, fmt::format("pcie{}", node * switches + i)));
  for (std::uint32_t i = 0; i < spec.gpus_per_node; ++i)
    graph.add_cable(first + i, ids[static_cast<std::size_t>(i / spec.pcie_switch_gpus)], LinkKind::scale_up, rate,
                    spec.scale_up_latency_ps);
  if (switches == 1) return;
  const std::uint32_t root = graph.add_vertex(VertexKind::scale_up_switch, fmt::format("root{}", node));
  for (const std::uint32_t id : ids) graph.add_cable(id, root, LinkKind::scale_up, rate, spec.scale_up_latency_ps);
}

void add_bridged_pairs(Graph& graph, const FabricSpec& spec, std::uint32_t first, std::int64_t node) {
  for (std::uint32_t i = 0; i + 1 < spec.gpus_per_node; i += 2)
    graph.add_cable(first + i, first + i + 1, LinkKind::scale_up, spec.scale_up_bits_per_second,
                    spec.scale_up_latency_ps);
  add_pcie_tree(graph, spec, first, node, spec.host_bits_per_second);
}

std::int64_t scale_up_cable_count(const FabricSpec& spec) {
  const std::int64_t gpus = spec.nodes * spec.gpus_per_node;
  if (spec.scale_up == ScaleUp::nvswitch) return gpus * spec.scale_up_planes;
  if (spec.scale_up == ScaleUp::full_mesh) return gpus * (spec.gpus_per_node - 1) / 2;
  return 2 * gpus + spec.nodes * pcie_switch_count(spec);
}

void add_scale_up(Graph& graph, const FabricSpec& spec, std::uint32_t first, std::int64_t node) {
  switch (spec.scale_up) {
    case ScaleUp::nvswitch:
      return add_nvswitches(graph, spec, first, node);
    case ScaleUp::full_mesh:
      return add_full_mesh(graph, spec, first);
    case ScaleUp::pcie:
      return add_pcie_tree(graph, spec, first, node, spec.scale_up_bits_per_second);
    case ScaleUp::nvlink_pairs:
      return add_bridged_pairs(graph, spec, first, node);
  }
}

}  // namespace

Graph build_nodes(const FabricSpec& spec) {
  check_spec(spec);
  Graph graph;
  check_limits(graph, spec.nodes * spec.gpus_per_node, scale_up_cable_count(spec), "scale-up");
  for (std::int64_t gpu = 0; gpu < spec.nodes * spec.gpus_per_node; ++gpu)
    graph.add_vertex(VertexKind::gpu, fmt::format("gpu{}", gpu));
  if (spec.gpus_per_node == 1) return graph;
  for (std::int64_t node = 0; node < spec.nodes; ++node) {
    add_scale_up(graph, spec, static_cast<std::uint32_t>(node * spec.gpus_per_node), node);
  }
  return graph;
}

}  // namespace manyworlds::topologies
