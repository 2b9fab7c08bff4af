// Pairwise-exchange all-to-all: in round k each member sends to the one k places on and receives from k places back;
// nobody begins a round before its own last one is over (Thakur et al., IJHPCA 2005, section 4.5).
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {

void add_pairwise(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members;
  dag.cut(n, n);
  std::vector<std::uint32_t> previous(n, kNoNode), current(n);  // transfer that member i sent in a round
  for (std::uint32_t round = 1; round < n; ++round) {
    const std::uint32_t back = round - 1;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t destination = (i + round) % n;
      current[i] = dag.add(
          i, destination, {i * n + destination}, Effect::copy,
          {previous[i], previous[(i + n - back) % n], previous[destination], previous[(destination + n - back) % n]});
    }
    previous.swap(current);
  }
}

}  // namespace manyworlds::core::collective
