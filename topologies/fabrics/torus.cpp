// Torus: routers in two or three dimensions, each row closed to a ring, with dimension-order routing. Rings of lossless
// links can deadlock without virtual channels (Dally and Seitz 1987), which the simulated network does not have.
#include <numeric>

#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
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

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const Torus parameters = options().make(values);
  if (parameters.dimensions == 2 && parameters.z != 0) throw core::InputError("torus.z needs torus.dimensions: 3");
  core::network::Graph graph = build_nodes(spec);
  const Tier routers = add_routers(graph, spec, parameters.router_hosts, "router");
  GridSizes sizes{parameters.x, parameters.y};
  if (parameters.dimensions == 3) sizes.push_back(parameters.z);
  sizes = complete_sizes("torus", sizes, static_cast<std::int64_t>(routers.size()));
  const std::int64_t diameter = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                                                [](std::int64_t sum, std::int64_t size) { return sum + size / 2; });
  check_path_length("torus " + to_text(sizes), diameter + 2,
                    "more torus.router_hosts or torus.dimensions: 3 would shorten them");
  join_grid(graph, spec, routers, sizes, true, parameters.cables);
  return graph;
}

}  // namespace

Topology torus() {
  return {"torus",
          "rings in 2 or 3 dimensions; lossless rings can deadlock under PFC",
          options().infos(),
          build,
          {.full_bisection = false, .acyclic = false, .small_options = {{"router_hosts", std::int64_t{1}}}}};
}

}  // namespace manyworlds::topologies
