// BCube (Guo et al., SIGCOMM 2009, section 3): n^levels servers, each with one port on an n-port switch of every level;
// a level-i switch connects the servers whose numbers in base n differ in digit i only. Servers forward.
#include "topologies/parts/limits.hpp"
#include "topologies/parts/nodes.hpp"
#include "topologies/parts/routers.hpp"

namespace manyworlds::topologies {

namespace {

struct BCube {
  std::int64_t levels = 2;
  std::int64_t switch_ports = 0;
  std::int64_t server_gpus = 0;
};

const core::OptionTable<BCube>& options() {
  static const core::OptionTable<BCube> table{
      core::option("levels", &BCube::levels, "levels of switches and ports of a server, k + 1 in the paper", {1, 5}),
      core::option("switch_ports", &BCube::switch_ports, "servers on a switch, n; 0: as many as the servers need",
                   {0, 4096}),
      core::option("server_gpus", &BCube::server_gpus, "GPUs per forwarding server; 0: the GPUs of a node", {0, 4096}),
  };
  return table;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t product = 1;
  for (std::int64_t i = 0; i < exponent; ++i) product *= base;
  return product;
}

/// Returns n such that n^levels = servers. Throws core::InputError if there is none.
std::int64_t ports_of(const BCube& parameters, std::int64_t servers) {
  std::int64_t ports = parameters.switch_ports;
  if (ports == 0)
    while (power(ports + 1, parameters.levels) <= servers) ++ports;
  std::int64_t product = 1;
  for (std::int64_t i = 0; i < parameters.levels && product <= servers; ++i) product *= ports;
  if (product != servers)
    throw core::InputError(fmt::format(
        "bcube: {} servers are not {}^{}; {} or {} servers (nodes, or GPUs by bcube.server_gpus) are valid with {} "
        "levels",
        servers, parameters.switch_ports > 0 ? std::to_string(parameters.switch_ports) : "n", parameters.levels,
        power(ports, parameters.levels), power(ports + 1, parameters.levels), parameters.levels));
  return ports;
}

core::network::Graph build(const core::OptionSet& values, const FabricSpec& spec) {
  const BCube parameters = options().make(values);
  core::network::Graph graph = build_nodes(spec);
  const Tier servers = add_routers(graph, spec, parameters.server_gpus, "server");
  const auto count = static_cast<std::int64_t>(servers.size());
  const std::int64_t ports = ports_of(parameters, count);
  check_path_length(fmt::format("bcube of {} levels", parameters.levels), 2 + 2 * parameters.levels,
                    "fewer bcube.levels would do");
  if (count == 1) return graph;
  check_limits(graph, 0, count * parameters.levels, "bcube");
  graph.grid = {
      servers.front(),
      std::vector<std::uint32_t>(static_cast<std::size_t>(parameters.levels), static_cast<std::uint32_t>(ports)),
      core::network::GridRows::switched};
  for (std::int64_t level = 0, stride = 1; level < parameters.levels; ++level, stride *= ports) {
    const Tier switches = add_tier(graph, count / ports, fmt::format("level{}_", level));
    for (std::int64_t server = 0; server < count; ++server) {
      const std::int64_t switch_index = server / (stride * ports) * stride + server % stride;  // without digit `level`
      join_routers(graph, spec, servers[static_cast<std::size_t>(server)],
                   switches[static_cast<std::size_t>(switch_index)], 1, level);
    }
  }
  return graph;
}

}  // namespace

Topology bcube() {
  return {"bcube",
          "forwarding servers with a port on a switch of every level",
          options().infos(),
          build,
          {.full_bisection = false}};
}

}  // namespace manyworlds::topologies
