// Recursive doubling all-reduce: whole vectors are exchanged at distance 1, 2, 4, …: log n steps, each with all bytes
// (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.5).
#include "core/collective/algorithms/exchange.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {

void add_recursive_doubling(DagBuilder& dag, const Shape& shape) {
  Exchange exchange(dag, shape.members);
  dag.cut(1);
  const auto everything = [](std::uint32_t) { return Part{}; };
  exchange.fold(everything, Effect::reduce);
  for (std::uint32_t distance = 1; distance < exchange.size(); distance *= 2)
    exchange.step(distance, everything, Effect::reduce);
  exchange.unfold(everything);
}

}  // namespace manyworlds::core::collective
