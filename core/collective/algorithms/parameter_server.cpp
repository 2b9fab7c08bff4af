// Parameter servers (Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014): members
// push their vectors to servers, each of which adds up its share and sends the sum to all. Servers are members
// themselves, as many as there are channels and evenly apart; one has all of the vector (OneToAll of Qi, Sparks and
// Talwalkar, "Paleo: A performance model for deep neural networks", ICLR 2017), and if all are servers it is a direct
// all-reduce.
#include <algorithm>

#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

std::uint32_t servers_of(const Shape& shape) {
  return std::clamp(shape.channels, std::uint32_t{1}, shape.members);
}

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members, servers = servers_of(shape);
  dag.set_block_partition(servers);
  const auto member_of = [&](std::uint32_t server) { return server * n / servers; };
  std::vector<std::vector<std::uint32_t>> pushed(servers);
  for (std::uint32_t round = 1; round < n; ++round)
    for (std::uint32_t server = 0; server < servers; ++server) {
      const std::uint32_t at = member_of(server);
      pushed[server].push_back(dag.add((at + round) % n, at, {server}, Effect::reduce));
    }
  std::vector<std::uint32_t> sum(servers);
  for (std::uint32_t server = 0; server < servers; ++server)
    sum[server] = dag.add_join(member_of(server), pushed[server]);
  for (std::uint32_t round = 1; round < n; ++round)
    for (std::uint32_t server = 0; server < servers; ++server) {
      const std::uint32_t at = member_of(server);
      dag.add(at, (at + round) % n, {server}, Effect::copy, {sum[server]});
    }
}

/// A server's share comes from, and goes to, all others.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t share = (s.bytes + servers_of(shape) - 1) / servers_of(shape);
  return {s.per_node > 1 ? 2 : 0, s.nodes > 1 ? 2 : 0, 2 * share * (s.per_node - 1),
          2 * share * (s.members - s.per_node)};
}

}  // namespace

AlgorithmInfo parameter_server_algorithm() {
  return {.help = "members push to servers among them, one for each channel, which send back sums",
          .kinds = {Kind::all_reduce},
          .add = add,
          .cost = cost,
          .multi_channel = true,
          .considered = nowhere,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
