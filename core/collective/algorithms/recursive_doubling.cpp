// Recursive-doubling all-reduce: whole vectors are exchanged at distance 1, 2, 4, …: log n steps, each with all bytes
// (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.5).
#include "core/collective/algorithms/recursive_exchange.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {

void add_recursive_doubling(DagBuilder& dag, const Shape& shape) {
  RecursiveExchange exchange(dag, shape.members);
  dag.set_block_partition(1);
  const auto all_blocks = [](std::uint32_t) { return BlockSet{}; };
  exchange.fold(all_blocks, Effect::reduce);
  for (std::uint32_t distance = 1; distance < exchange.size(); distance *= 2)
    exchange.step(distance, all_blocks, Effect::reduce);
  exchange.unfold(all_blocks);
}

}  // namespace manyworlds::core::collective
