// Full mesh: every router joined to every other, so that a path crosses one or two of them.
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/room.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct FullMesh {
  std::int64_t router_hosts = 0;
  std::int64_t cables = 1;
};

const core::OptionTable<FullMesh>& options() {
  static const core::OptionTable<FullMesh> table{
      core::option("router_hosts", &FullMesh::router_hosts, "NIC ports of a router; 0: one router per node", {0, 4096}),
      core::option("cables", &FullMesh::cables, "parallel cables between any two routers", {1, 64}),
  };
  return table;
}

core::network::Graph build(const core::OptionSet& values, const Site& site) {
  const FullMesh given = options().make(values);
  core::network::Graph graph = place_nodes(site);
  const Tier routers = add_routers(graph, site, given.router_hosts, "router");
  const auto count = static_cast<std::int64_t>(routers.size());
  require_room(graph, 0, count * (count - 1) / 2 * given.cables, "router");
  for (std::size_t a = 0; a < routers.size(); ++a)
    for (std::size_t b = a + 1; b < routers.size(); ++b)
      join_routers(graph, site, routers[a], routers[b], given.cables, 0);
  return graph;
}

}  // namespace

Topology full_mesh() {
  return {"full_mesh", "every router joined to every other", options().infos(), build, {.full_bisection = false}};
}

}  // namespace manyworlds::topologies
