// Hypercube: 2^d routers, connected if their numbers differ in one bit; routing corrects the lowest differing bit first
// (e-cube routing, Dally and Seitz 1987, section 4).
#include <bit>

#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct Hypercube {
  std::int64_t router_hosts = 0;
  std::int64_t cables = 1;
};

const core::OptionTable<Hypercube>& options() {
  static const core::OptionTable<Hypercube> table{
      core::option("router_hosts", &Hypercube::router_hosts, "NIC ports of a router; 0: one router per node",
                   {0, 4096}),
      core::option("cables", &Hypercube::cables, "parallel cables between neighbours", {1, 64}),
  };
  return table;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const Hypercube parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  const Tier routers = add_routers(graph, spec, parameters.router_hosts, "router");
  if (!std::has_single_bit(routers.size()))
    throw core::InputError(
        fmt::format("hypercube: {} routers are not a power of two, but {} and {} are (the cluster's "
                    "nodes, or GPUs by hypercube.router_hosts)",
                    routers.size(), std::bit_floor(routers.size()), std::bit_ceil(routers.size())));
  const std::int64_t dimensions = std::countr_zero(routers.size());
  check_path_length(fmt::format("hypercube of {} routers", routers.size()), dimensions + 2,
                    "more hypercube.router_hosts would shorten them");
  check_limits(graph, 0, static_cast<std::int64_t>(routers.size()) * dimensions / 2 * parameters.cables, "router");
  graph.grid = {routers.front(), std::vector<std::uint32_t>(static_cast<std::size_t>(dimensions), 2),
                core::network::GridRows::line};
  for (std::int64_t bit = 0; bit < dimensions; ++bit)
    for (std::size_t router = 0; router < routers.size(); ++router)
      if (const std::size_t other = router | std::size_t{1} << bit; other != router)
        join_routers(graph, spec, routers[router], routers[other], parameters.cables, bit);
  return graph;
}

}  // namespace

Topology hypercube() {
  return {"hypercube",
          "2^d routers, neighbours differ in one bit",
          options().infos(),
          build,
          {.full_bisection = false, .small_options = {{"router_hosts", std::int64_t{1}}}}};
}

}  // namespace manyworlds::topologies
