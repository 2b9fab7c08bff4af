// Pairwise-exchange all-to-all: in round k each member sends to the member k positions after it and receives from the
// one k positions before it; a member begins a round when its previous round is complete (Thakur et al., IJHPCA 2005,
// section 4.5).
#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members;
  dag.set_block_partition(n, n);
  std::vector<std::uint32_t> previous(n, kNoNode), current(n);  // by sender: its transfer in a round
  for (std::uint32_t round = 1; round < n; ++round) {
    const std::uint32_t previous_round = round - 1;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t destination = (i + round) % n;
      current[i] = dag.add(i, destination, {i * n + destination}, Effect::copy,
                           {previous[i], previous[(i + n - previous_round) % n], previous[destination],
                            previous[(destination + n - previous_round) % n]});
    }
    previous.swap(current);
  }
}

CostTerms cost(const Shape&, const CollectiveSizes& s) {
  const std::int64_t block = s.bytes / s.members;
  return {s.per_node - 1, s.members - s.per_node, block * (s.per_node - 1), block * (s.members - s.per_node)};
}

}  // namespace

AlgorithmInfo pairwise_algorithm() {
  return {.help = "one partner after the other",
          .kinds = {Kind::all_to_all},
          .add = add,
          .cost = cost,
          .considered_if_calibrated = everywhere,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
