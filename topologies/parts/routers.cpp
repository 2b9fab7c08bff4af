#include "topologies/parts/routers.hpp"

#include "core/base/error.hpp"
#include "topologies/parts/room.hpp"

namespace manyworlds::topologies {

using core::network::Graph;
using core::network::LinkKind;

Tier add_routers(Graph& graph, const Site& site, std::int64_t hosts, std::string_view prefix) {
  const std::int64_t each = hosts > 0 ? hosts : site.gpus_per_node;
  const Tier routers = add_tier(graph, (graph.gpus + each - 1) / each, prefix);
  for (std::uint32_t gpu = 0; gpu < graph.gpus; ++gpu)
    connect(graph, site, gpu, routers[static_cast<std::size_t>(gpu / each)]);
  return routers;
}

void join_routers(Graph& graph, const Site& site, std::uint32_t a, std::uint32_t b, std::int64_t cables,
                  std::int64_t order) {
  for (std::int64_t i = 0; i < cables; ++i)
    graph.add_cable(
        {a, b, LinkKind::network, site.nic_bits_per_second, site.nic_latency_ps, static_cast<std::uint8_t>(order), 1});
}

namespace {

/// The largest divisor of `number` whose `power`-th power does not exceed it.
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

std::string text_of(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

Sizes sizes_of(std::string_view topology, Sizes sizes, std::int64_t routers) {
  const Sizes given = sizes;
  std::int64_t rest = routers;
  std::size_t open = 0;
  bool divides = true;
  for (const std::int64_t size : sizes) {
    if (size == 0) {
      ++open;
    } else {
      divides &= rest % size == 0;
      rest /= size;
    }
  }
  for (std::int64_t& size : sizes) {
    if (size != 0) continue;
    size = open == 1 ? rest : divisor_near_root(rest, open);
    rest /= size > 0 ? size : 1;
    --open;
  }
  if (!divides || rest != 1)
    throw core::InputError(fmt::format("{}: sizes {} do not make the {} routers of this cluster; {} would", topology,
                                       text_of(given), routers,
                                       text_of(sizes_of(topology, Sizes(given.size(), 0), routers))));
  return sizes;
}

void join_grid(Graph& graph, const Site& site, const Tier& routers, const Sizes& sizes, bool wrap,
               std::int64_t cables) {
  require_room(graph, 0, static_cast<std::int64_t>(routers.size() * sizes.size()) * cables, "router");
  std::int64_t stride = 1;
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension) {
    const std::int64_t size = sizes[dimension];
    for (std::int64_t router = 0; router < static_cast<std::int64_t>(routers.size()); ++router) {
      const std::int64_t place = router / stride % size;
      const bool last = place == size - 1;
      if (last && !(wrap && size > 2)) continue;
      const std::int64_t next = last ? router - (size - 1) * stride : router + stride;
      join_routers(graph, site, routers[static_cast<std::size_t>(router)], routers[static_cast<std::size_t>(next)],
                   cables, static_cast<std::int64_t>(dimension));
    }
    stride *= size;
  }
}

}  // namespace manyworlds::topologies
