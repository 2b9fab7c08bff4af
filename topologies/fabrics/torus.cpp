// Torus: routers in two or three dimensions, each row closed to a ring, dimension-order routing. Dally and Seitz 1987
// show why rings of lossless links can deadlock without virtual channels, of which this network has none.
#include <numeric>

#include "topologies/parts/nodes.hpp"
#include "topologies/parts/room.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct Torus {
  std::int64_t dimensions = 2;
  std::int64_t x = 0, y = 0, z = 0;
  std::int64_t router_hosts = 0;
  std::int64_t cables = 1;
};

const core::OptionTable<Torus>& options() {
  static const core::OptionTable<Torus> table{
      core::option("dimensions", &Torus::dimensions, "2: x and y; 3: x, y and z", {2, 3}),
      core::option("x", &Torus::x, "routers in a row of x; 0: as even as the cluster allows", {0, 4096}),
      core::option("y", &Torus::y, "routers in a row of y; 0: as even as the cluster allows", {0, 4096}),
      core::option("z", &Torus::z, "routers in a row of z, with 3 dimensions; 0: as even as possible", {0, 4096}),
      core::option("router_hosts", &Torus::router_hosts, "NIC ports of a router; 0: one router per node", {0, 4096}),
      core::option("cables", &Torus::cables, "parallel cables between neighbours", {1, 64}),
  };
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const Torus given = options().make(values);
  if (given.dimensions == 2 && given.z != 0) throw core::InputError("torus.z needs torus.dimensions: 3");
  core::network::Graph graph = place_nodes(site);
  const Tier routers = add_routers(graph, site, given.router_hosts, "router");
  Sizes sizes{given.x, given.y};
  if (given.dimensions == 3) sizes.push_back(given.z);
  sizes = sizes_of("torus", sizes, static_cast<std::int64_t>(routers.size()));
  const std::int64_t halves = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                                              [](std::int64_t sum, std::int64_t size) { return sum + size / 2; });
  require_reach("torus " + text_of(sizes), halves + 2,
                "more torus.router_hosts or torus.dimensions: 3 would shorten them");
  join_grid(graph, site, routers, sizes, true, given.cables);
  return graph;
}

}  // namespace

Topology torus() {
  return {"torus",
          "rings in 2 or 3 dimensions; lossless rings can deadlock under PFC",
          options().infos(),
          build,
          {.full_bisection = false, .acyclic = false, .small = {{"router_hosts", std::int64_t{1}}}}};
}

}  // namespace manyworlds::topologies
