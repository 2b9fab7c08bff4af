// Direct collectives: every member sends a block to every other member at once. An all-reduce is a direct
// reduce-scatter and a direct all-gather (two steps for any number of members; Chan et al. 2007, section 4, on fully
// connected networks).
#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members;
  dag.set_block_partition(n);
  std::vector<std::vector<std::uint32_t>> reductions(n);  // by member: transfers that carry its block to it
  for (std::uint32_t round = 1; round < n && shape.kind != Kind::all_gather; ++round)
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t destination = (i + round) % n;
      reductions[destination].push_back(dag.add(i, destination, {destination}, Effect::reduce));
    }
  if (shape.kind == Kind::reduce_scatter) return;
  std::vector<std::uint32_t> ready(n, kNoNode);
  for (std::uint32_t i = 0; i < n && shape.kind == Kind::all_reduce; ++i) ready[i] = dag.add_join(i, reductions[i]);
  for (std::uint32_t round = 1; round < n; ++round)
    for (std::uint32_t i = 0; i < n; ++i) dag.add(i, (i + round) % n, {i}, Effect::copy, {ready[i]});
}

/// On a full mesh each block inside a node has a link of its own.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t block = s.bytes / s.members, on_link = std::min<std::int64_t>(s.per_node - 1, 1);
  return {s.per_node > 1 ? s.passes : 0, s.nodes > 1 ? s.passes : 0,
          s.passes * block * (shape.node_mesh ? on_link : s.per_node - 1), s.passes * block * (s.members - s.per_node)};
}

}  // namespace

AlgorithmInfo direct_algorithm() {
  return {.help = "every member sends to every other at once; auto takes it inside a node alone",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
          .add = add,
          .cost = cost,
          .considered = inside_a_node,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
