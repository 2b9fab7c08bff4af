#include "topologies/parts/routers.hpp"

#include "core/base/error.hpp"
#include "topologies/parts/limits.hpp"

namespace manyworlds::topologies {

using core::network::Graph;
using core::network::GridRows;
using core::network::LinkKind;

Tier add_routers(Graph& graph, const FabricSpec& spec, std::int64_t hosts, std::string_view prefix) {
  const std::int64_t hosts_per_router = hosts > 0 ? hosts : spec.gpus_per_node;
  const Tier routers = add_tier(graph, (graph.gpus + hosts_per_router - 1) / hosts_per_router, prefix);
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    add_network_cable(graph, spec, gpu, routers[static_cast<std::size_t>(gpu / hosts_per_router)]);
  return routers;
}

void join_routers(Graph& graph, const FabricSpec& spec, std::uint32_t a, std::uint32_t b, std::int64_t cables,
                  std::int64_t order) {
  for (std::int64_t i = 0; i < cables; ++i)
    graph.add_cable(
        {a, b, LinkKind::network, spec.nic_bits_per_second, spec.nic_latency_ps, static_cast<std::uint8_t>(order), 1});
}

namespace {

/// Returns the largest divisor of `number` whose `power`-th power does not exceed it.
std::int64_t divisor_near_root(std::int64_t number, std::size_t power) {
  std::int64_t best = 1;
  for (std::int64_t candidate = 1; candidate <= number; ++candidate) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < power; ++i) product *= candidate;
    if (product > number) break;
    if (number % candidate == 0) best = candidate;
  }
  return best;
}

}  // namespace

std::string to_text(const GridSizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

GridSizes complete_sizes(std::string_view topology, GridSizes sizes, std::int64_t routers) {
  const GridSizes given_sizes = sizes;
  std::int64_t remaining = routers;
  std::size_t unset_count = 0;
  bool divides = true;
  for (const std::int64_t size : sizes) {
    if (size == 0) {
      ++unset_count;
    } else {
      divides &= remaining % size == 0;
      remaining /= size;
    }
  }
  for (std::int64_t& size : sizes) {
    if (size != 0) continue;
    size = unset_count == 1 ? remaining : divisor_near_root(remaining, unset_count);
    remaining /= size > 0 ? size : 1;
    --unset_count;
  }
  if (!divides || remaining != 1)
    throw core::InputError(fmt::format("{}: the product of sizes {} is not the cluster's {} routers; {} is valid",
                                       topology, to_text(given_sizes), routers,
                                       to_text(complete_sizes(topology, GridSizes(given_sizes.size(), 0), routers))));
  return sizes;
}

void join_grid(Graph& graph, const FabricSpec& spec, const Tier& routers, const GridSizes& sizes, bool wrap,
               std::int64_t cables) {
  check_limits(graph, 0, static_cast<std::int64_t>(routers.size() * sizes.size()) * cables, "router");
  graph.grid = {routers.front(), {sizes.begin(), sizes.end()}, wrap ? GridRows::ring : GridRows::line};
  std::int64_t stride = 1;
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension) {
    const std::int64_t size = sizes[dimension];
    for (std::int64_t router = 0; router < static_cast<std::int64_t>(routers.size()); ++router) {
      const std::int64_t position = router / stride % size;
      const bool last = position == size - 1;
      if (last && !(wrap && size > 2)) continue;
      const std::int64_t next = last ? router - (size - 1) * stride : router + stride;
      join_routers(graph, spec, routers[static_cast<std::size_t>(router)], routers[static_cast<std::size_t>(next)],
                   cables, static_cast<std::int64_t>(dimension));
    }
    stride *= size;
  }
}

}  // namespace manyworlds::topologies
