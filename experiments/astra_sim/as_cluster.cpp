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
  return fmt::format(
      "gpus_per_node: {0}, gpu: {{like: GPU, scale_up: {1}, scale_up_domain: {0}, scale_up_gb_per_s: {2:.10g}, "
      "scale_up_latency_us: {3:.10g}}}",
      dimension.ranks, is_mesh ? "full_mesh" : "nvswitch", rate_of(dimension) * (is_mesh ? dimension.ranks - 1 : 1),
      latency_us(dimension));
}

}  // namespace

std::string as_cluster(const Network& network) {
  constexpr const char* kSaid = "the network in a spec, with a GPU of yours";
  const NetworkDimension& first = network.dimensions.front();
  const NetworkDimension& last = network.dimensions.back();
  const std::string nics =
      fmt::format("nic_gbps: {:.10g}, nic_latency_us: {:.10g}", rate_of(last) * 8, latency_us(last));
  if (network.dimensions.size() == 1 && first.block == Block::switched)
    return fmt::format("{}: cluster: {{nodes: {}, gpus_per_node: 1, gpu: GPU, {}}}, topology: one_switch", kSaid,
                       first.ranks, nics);
  if (network.dimensions.size() == 1 && first.block == Block::fully_connected)
    return fmt::format("{}: cluster: {{nodes: 1, {}, nic_gbps: 1}}, topology: one_switch", kSaid, as_node(first));
  if (network.dimensions.size() == 2 && first.block != Block::ring && last.block == Block::switched)
    return fmt::format("{}: cluster: {{nodes: {}, {}, {}}}, topology: rail_only", kSaid, last.ranks, as_node(first),
                       nics);
  return "the network has no equal in a spec: a Ring, or more than a node of Switch or FullyConnected and a Switch "
         "behind it; topology torus is nearest to rings (docs/astra_sim.md)";
}

}  // namespace manyworlds::experiments::astra_sim
