// Recursive-doubling all-reduce: whole vectors are exchanged at distance 1, 2, 4, …: log n steps, each with all bytes
// (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.5).
#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/recursive_exchange.hpp"

namespace manyworlds::core::collective {
namespace {

void add(DagBuilder& dag, const Shape& shape) {
  RecursiveExchange exchange(dag, shape.members);
  dag.set_block_partition(1);
  const auto all_blocks = [](std::uint32_t) { return BlockSet{}; };
  exchange.fold(all_blocks, Effect::reduce);
  for (std::uint32_t distance = 1; distance < exchange.size(); distance *= 2)
    exchange.step(distance, all_blocks, Effect::reduce);
  exchange.unfold(all_blocks);
}

CostTerms cost(const Shape&, const CollectiveSizes& s) {
  CostTerms terms{log2_up(s.per_node), log2_up(s.nodes), 0, 0};
  if (!is_power_of_two(s.members)) (s.per_node > 1 ? terms.intra_node_steps : terms.inter_node_steps) += 2;
  terms.intra_node_bytes = terms.intra_node_steps * s.bytes;
  terms.inter_node_bytes = terms.inter_node_steps * s.bytes;
  return terms;
}

}  // namespace

AlgorithmInfo recursive_doubling_algorithm() {
  return {.help = "whole vectors exchanged in log n steps: for small ones",
          .kinds = {Kind::all_reduce},
          .add = add,
          .cost = cost,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
