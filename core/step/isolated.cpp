#include "core/step/isolated.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::core::step {

IsolatedResult simulate_isolated(const collective::Dag& dag, const Connections& connections,
                                 const network::Graph& graph, network::Memo& memo) {
  network::Traffic traffic(network::make_flows(memo));
  std::map<std::uint32_t, std::uint32_t> local;
  std::vector<network::Route> routes = connections.routes;
  for (network::Route& route : routes)
    for (std::uint32_t& link : route) {
      const auto found = local.find(link);
      link = found != local.end() ? found->second : local[link] = traffic.add_link(network::spec_of(graph, link));
    }
  const std::uint32_t id = traffic.add(std::make_shared<collective::Dag>(dag), routes);
  traffic.set_ranks({0});
  for (std::uint32_t member = 0; member < dag.members; ++member) traffic.enter(id, member);
  std::vector<network::Exit> exits;
  while (exits.size() < dag.members || !traffic.drained()) traffic.advance(kNever, exits);
  IsolatedResult result;
  result.exits.resize(dag.members);
  for (const network::Exit& exit : exits) result.exits[exit.member] = exit.at;
  result.drained = traffic.quiet_since();
  result.counters = traffic.counters();
  return result;
}

std::string encode(const IsolatedResult& result) {
  sharing::ByteWriter out;
  out.integer(static_cast<std::int64_t>(result.exits.size()));
  for (const Time exit : result.exits) out.integer(exit);
  out.integer(result.drained)
      .integer(result.counters.link_hops)
      .integer(result.counters.ecn_marks)
      .integer(result.counters.pauses);
  return out.take();
}

IsolatedResult decode_isolated(const std::string& bytes) {
  sharing::ByteReader in(bytes);
  IsolatedResult result;
  result.exits.resize(in.count(8));
  for (Time& exit : result.exits) exit = in.integer();
  result.drained = in.integer();
  result.counters.link_hops = in.integer();
  result.counters.ecn_marks = in.integer();
  result.counters.pauses = in.integer();
  in.end();
  return result;
}

}  // namespace manyworlds::core::step
