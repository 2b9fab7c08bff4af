// Mesh: routers in two or three dimensions without wrap-around. Dimension-order routing, in which no links wait for
// each other in a cycle (Dally and Seitz 1987).
#include <numeric>

#include "topologies/parts/nodes.hpp"
#include "topologies/parts/room.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct Mesh {
  std::int64_t dimensions = 2;
  std::int64_t x = 0, y = 0, z = 0;
  std::int64_t router_hosts = 0;
  std::int64_t cables = 1;
};

const core::OptionTable<Mesh>& options() {
  static const core::OptionTable<Mesh> table{
      core::option("dimensions", &Mesh::dimensions, "2: x and y; 3: x, y and z", {2, 3}),
      core::option("x", &Mesh::x, "routers in a row of x; 0: as even as the cluster allows", {0, 4096}),
      core::option("y", &Mesh::y, "routers in a row of y; 0: as even as the cluster allows", {0, 4096}),
      core::option("z", &Mesh::z, "routers in a row of z, with 3 dimensions; 0: as even as possible", {0, 4096}),
      core::option("router_hosts", &Mesh::router_hosts, "NIC ports of a router; 0: one router per node", {0, 4096}),
      core::option("cables", &Mesh::cables, "parallel cables between neighbours", {1, 64}),
  };
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const Mesh given = options().make(values);
  if (given.dimensions == 2 && given.z != 0) throw core::InputError("mesh.z needs mesh.dimensions: 3");
  core::network::Graph graph = place_nodes(site);
  const Tier routers = add_routers(graph, site, given.router_hosts, "router");
  Sizes sizes{given.x, given.y};
  if (given.dimensions == 3) sizes.push_back(given.z);
  sizes = sizes_of("mesh", sizes, static_cast<std::int64_t>(routers.size()));
  const std::int64_t steps = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                                             [](std::int64_t sum, std::int64_t size) { return sum + size - 1; });
  require_reach("mesh " + text_of(sizes), steps + 2, "more mesh.router_hosts or mesh.dimensions: 3 would shorten them");
  join_grid(graph, site, routers, sizes, false, given.cables);
  return graph;
}

}  // namespace

Topology mesh() {
  return {"mesh",
          "a grid in 2 or 3 dimensions",
          options().infos(),
          build,
          {.full_bisection = false, .small = {{"router_hosts", std::int64_t{1}}}}};
}

}  // namespace manyworlds::topologies
