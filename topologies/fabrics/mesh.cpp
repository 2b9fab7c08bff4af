// Mesh: routers in two or three dimensions without wrap-around links. With dimension-order routing no links wait for
// each other in a cycle (Dally and Seitz 1987).
#include <numeric>

#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
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

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const Mesh parameters = options().make(values);
  if (parameters.dimensions == 2 && parameters.z != 0) throw core::InputError("mesh.z needs mesh.dimensions: 3");
  core::network::Graph graph = build_nodes(spec);
  const Tier routers = add_routers(graph, spec, parameters.router_hosts, "router");
  GridSizes sizes{parameters.x, parameters.y};
  if (parameters.dimensions == 3) sizes.push_back(parameters.z);
  sizes = complete_sizes("mesh", sizes, static_cast<std::int64_t>(routers.size()));
  const std::int64_t diameter = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0},
                                                [](std::int64_t sum, std::int64_t size) { return sum + size - 1; });
  check_path_length("mesh " + to_text(sizes), diameter + 2,
                    "more mesh.router_hosts or mesh.dimensions: 3 would shorten them");
  join_grid(graph, spec, routers, sizes, false, parameters.cables);
  return graph;
}

}  // namespace

Topology mesh() {
  return {"mesh",
          "a grid in 2 or 3 dimensions",
          options().infos(),
          build,
          {.full_bisection = false, .small_options = {{"router_hosts", std::int64_t{1}}}}};
}

}  // namespace manyworlds::topologies
