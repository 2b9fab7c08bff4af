#include "experiments/astra_sim/as_cluster.hpp"

#include <fmt/format.h>

namespace manyworlds::experiments::astra_sim {
namespace {

/// GB/s of 10^9 that a link has.
double rate_of(const NetworkDimension& dimension) {
  return dimension.bytes_per_ns();
}

/// Our latencies are above 0, at least a picosecond.
double latency_us(const NetworkDimension& dimension) {
  return dimension.latency_ns > 0.001 ? dimension.latency_ns * 1e-3 : 1e-6;
}

/// A dimension inside a node: its GPUs on an NVSwitch, or each with a link to every other.
std::string as_node(const NetworkDimension& dimension) {
  const bool is_mesh = dimension.block == Block::fully_connected;
  return fmt::format("scale_up: {}, scale_up_domain: {}, scale_up_gb_per_s: {:.10g}, scale_up_latency_us: {:.10g}",
                     is_mesh ? "full_mesh" : "nvswitch", dimension.ranks,
                     rate_of(dimension) * (is_mesh ? dimension.ranks - 1 : 1), latency_us(dimension));
}

}  // namespace

std::string as_cluster(const Network& network) {
  const NetworkDimension& first = network.dimensions.front();
  const NetworkDimension& last = network.dimensions.back();
  const std::string nics =
      fmt::format("nic_gbps: {:.10g}, nic_latency_us: {:.10g}", rate_of(last) * 8, latency_us(last));
  if (network.dimensions.size() == 1 && first.block == Block::switched)
    return fmt::format("the network in a spec: cluster: {{nodes: {}, gpus_per_node: 1, {}}}, topology: one_switch",
                       first.ranks, nics);
  if (network.dimensions.size() == 1 && first.block == Block::fully_connected)
    return fmt::format("the network in a spec: cluster: {{nodes: 1, gpus_per_node: {}, gpu: {{{}}}}}", first.ranks,
                       as_node(first));
  if (network.dimensions.size() == 2 && first.block != Block::ring && last.block == Block::switched)
    return fmt::format(
        "the network in a spec: cluster: {{nodes: {}, gpus_per_node: {}, gpu: {{{}}}, {}}}, topology: rail_only",
        last.ranks, first.ranks, as_node(first), nics);
  return "the network has no equal in a spec: a Ring, or more than a node of Switch or FullyConnected and a Switch "
         "behind it; topology torus is nearest to rings (docs/astra_sim.md)";
}

}  // namespace manyworlds::experiments::astra_sim
