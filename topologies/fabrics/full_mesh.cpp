// Full mesh: every router is connected to every other, so that a path crosses one or two routers.
#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
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

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const FullMesh parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  const Tier routers = add_routers(graph, spec, parameters.router_hosts, "router");
  const auto count = static_cast<std::int64_t>(routers.size());
  check_limits(graph, 0, count * (count - 1) / 2 * parameters.cables, "router");
  graph.grid = {routers.front(), {static_cast<std::uint32_t>(count)}, core::network::GridRows::complete};
  for (std::size_t a = 0; a < routers.size(); ++a)
    for (std::size_t b = a + 1; b < routers.size(); ++b)
      join_routers(graph, spec, routers[a], routers[b], parameters.cables, 0);
  return graph;
}

}  // namespace

Topology full_mesh() {
  return {"full_mesh", "every router connected to every other", options().infos(), build, {.full_bisection = false}};
}

}  // namespace manyworlds::topologies
