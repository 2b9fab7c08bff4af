// Times of single collectives, packet by packet.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "core/collective/algorithms/registry.hpp"
#include "tests/core/step/step_configurations.hpp"

namespace manyworlds::tests {

/// Returns the time of a shape on the first GPUs of a fabric that is otherwise idle, packet by packet, without headers.
inline core::Time simulated(const core::collective::Shape& shape,
                            const std::shared_ptr<const core::network::Graph>& graph) {
  core::network::Router router(graph, core::network::Routing::destination_mod_k, 1);
  const core::collective::Dag dag = core::collective::build(shape);
  std::vector<std::uint32_t> members(shape.members);
  std::iota(members.begin(), members.end(), 0);
  core::step::Connections connections;
  for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair)
    connections.routes.push_back(core::step::route_of(router, {dag.pairs, dag.switches}, members, pair, 0));
  core::network::Transport transport;
  transport.header_bytes = 0;
  core::network::ComponentCache cache(transport);
  const auto result = core::step::simulate_isolated(dag, connections, *graph, cache);
  return *std::max_element(result.exits.begin(), result.exits.end());
}

}  // namespace manyworlds::tests
