// Recursive halving and doubling: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, for
// all-reduce; Thakur, Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 and 4.2, for its halves. An all-reduce begins
// with neighbours, so that most bytes stay in the node; the halves keep each member's block in its place, which takes
// the largest distance first in the reduce-scatter and last in the all-gather.
#include "core/collective/algorithms/exchange.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {
namespace {

void all_reduce(DagBuilder& dag, const Shape& shape) {
  Exchange exchange(dag, shape.members);
  const std::uint32_t size = exchange.size();
  dag.cut(size);
  const auto everything = [&](std::uint32_t) { return Part{0, size}; };
  exchange.fold(everything, Effect::reduce);
  // After a step of `distance` participant v answers for the blocks that agree with it in that bit and those below.
  for (std::uint32_t distance = 1; distance < size; distance *= 2)
    exchange.step(
        distance,
        [&](std::uint32_t v) {
          return Part{(v ^ distance) % (2 * distance), size / (2 * distance), 2 * distance};
        },
        Effect::reduce);
  for (std::uint32_t distance = size / 2; distance > 0; distance /= 2)
    exchange.step(
        distance,
        [&](std::uint32_t v) {
          return Part{v % (2 * distance), size / (2 * distance), 2 * distance};
        },
        Effect::copy);
  exchange.unfold(everything);
}

/// The blocks of all members behind participants [first, first + count).
Part blocks_of(const Exchange& exchange, std::uint32_t first, std::uint32_t count) {
  return {exchange.first(first), exchange.first(first + count) - exchange.first(first)};
}

void reduce_scatter(DagBuilder& dag, const Shape& shape) {
  Exchange exchange(dag, shape.members);
  dag.cut(shape.members);
  exchange.fold([&](std::uint32_t) { return Part{0, shape.members}; }, Effect::reduce);
  for (std::uint32_t distance = exchange.size() / 2; distance > 0; distance /= 2)
    exchange.step(
        distance, [&](std::uint32_t v) { return blocks_of(exchange, (v ^ distance) / distance * distance, distance); },
        Effect::reduce);
  exchange.unfold([&](std::uint32_t member) { return Part{member}; });
}

void all_gather(DagBuilder& dag, const Shape& shape) {
  Exchange exchange(dag, shape.members);
  dag.cut(shape.members);
  exchange.fold([&](std::uint32_t member) { return Part{member}; }, Effect::copy);
  for (std::uint32_t distance = 1; distance < exchange.size(); distance *= 2)
    exchange.step(
        distance, [&](std::uint32_t v) { return blocks_of(exchange, v / distance * distance, distance); },
        Effect::copy);
  exchange.unfold([&](std::uint32_t) { return Part{0, shape.members}; });
}

}  // namespace

void add_halving_doubling(DagBuilder& dag, const Shape& shape) {
  if (shape.kind == Kind::all_reduce)
    all_reduce(dag, shape);
  else if (shape.kind == Kind::reduce_scatter)
    reduce_scatter(dag, shape);
  else
    all_gather(dag, shape);
}

}  // namespace manyworlds::core::collective
