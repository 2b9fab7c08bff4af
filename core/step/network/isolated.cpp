#include "core/step/network/isolated.hpp"

#include "core/base/error.hpp"
#include "core/step/network/critical_paths.hpp"
#include "core/step/network/local_links.hpp"

namespace manyworlds::core::step {

IsolatedResult uncontended(const collective::Dag& dag, const Connections& connections, const network::Graph& graph,
                           const network::Transport& transport) {
  auto paths = std::make_shared<CriticalPaths::Paths>(paths_of(dag, connections, graph));
  CriticalPaths critical_paths(std::shared_ptr<const collective::Dag>(std::shared_ptr<void>(), &dag), std::move(paths));
  std::vector<network::Exit> exits;
  for (std::uint32_t member = 0; member < dag.members; ++member) critical_paths.enter(transport, member, 0, 0, exits);
  MANYWORLDS_CHECK(exits.size() == dag.members, "{} of {} members leave", exits.size(), dag.members);
  IsolatedResult result;
  result.exits.resize(dag.members);
  for (const network::Exit& exit : exits) result.exits[exit.member] = exit.at;
  result.drained = critical_paths.last_activity();
  result.counters.link_hops = critical_paths.link_hops();
  return result;
}

IsolatedResult of_all_ranks(IsolatedResult of_members, const CollectiveOp& collective_op) {
  const std::size_t simulated = of_members.exits.size();
  for (std::size_t member = simulated; member < collective_op.shape.members; ++member)
    of_members.exits.push_back(of_members.exits[member - simulated]);
  of_members.counters = of_members.counters * collective_op.ranks_per_member();
  return of_members;
}

IsolatedResult simulate_isolated(const collective::Dag& dag, const Connections& connections,
                                 const network::Graph& graph, network::ComponentCache& cache) {
  if (cache.transport().fidelity != network::Fidelity::packet)
    return uncontended(dag, connections, graph, cache.transport());
  network::Traffic traffic(network::make_flows(cache));
  LocalLinks links(graph, cache.fabric() != nullptr);
  const std::vector<network::Route> routes = links.add(traffic, connections.routes);
  const std::uint32_t id = traffic.add(std::make_shared<collective::Dag>(dag), routes);
  traffic.set_tie_order({0});
  for (std::uint32_t member = 0; member < dag.members; ++member) traffic.enter(id, member);
  std::vector<network::Exit> exits;
  while (exits.size() < dag.members || !traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(kNever, exits);
    if (exits.size() == before && !traffic.drained())
      network::throw_pfc_deadlock(graph, network::relabeled(traffic.deadlock(), links.of_graph()));
  }
  IsolatedResult result;
  result.exits.resize(dag.members);
  for (const network::Exit& exit : exits) result.exits[exit.member] = exit.at;
  result.drained = traffic.last_activity();
  result.counters = traffic.counters();
  return result;
}

}  // namespace manyworlds::core::step
