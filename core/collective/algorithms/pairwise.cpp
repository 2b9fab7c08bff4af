// Pairwise-exchange all-to-all: in round k each member sends to the member k positions after it and receives from the
// one k positions before it; a member begins a round when its previous round is complete (Thakur et al., IJHPCA 2005,
// section 4.5).
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {

void add_pairwise(DagBuilder& dag, const Shape& shape) {
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

}  // namespace manyworlds::core::collective
