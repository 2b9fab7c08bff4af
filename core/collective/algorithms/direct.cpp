// Direct collectives: every member sends its part to every other at once. An all-reduce is a direct reduce-scatter and
// a direct all-gather (two steps however many members; Chan et al. 2007, section 4, on fully connected networks).
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {

void add_direct(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members;
  dag.cut(n);
  std::vector<std::vector<std::uint32_t>> reduced(n);  // what came to each member for its block
  for (std::uint32_t round = 1; round < n && shape.kind != Kind::all_gather; ++round)
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t destination = (i + round) % n;
      reduced[destination].push_back(dag.add(i, destination, {destination}, Effect::reduce));
    }
  if (shape.kind == Kind::reduce_scatter) return;
  std::vector<std::uint32_t> ready(n, kNoNode);
  for (std::uint32_t i = 0; i < n && shape.kind == Kind::all_reduce; ++i) ready[i] = dag.join(i, reduced[i]);
  for (std::uint32_t round = 1; round < n; ++round)
    for (std::uint32_t i = 0; i < n; ++i) dag.add(i, (i + round) % n, {i}, Effect::copy, {ready[i]});
}

}  // namespace manyworlds::core::collective
