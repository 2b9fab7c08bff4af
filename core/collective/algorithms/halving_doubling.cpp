// Recursive halving and doubling: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, for
// all-reduce; Thakur, Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 and 4.2, for all-gather and reduce-scatter. An
// all-reduce begins at distance 1, so that most bytes stay inside nodes. The other two must end (or begin) with each
// member's own block, so the largest distance is first in the reduce-scatter and last in the all-gather.
#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/recursive_exchange.hpp"

namespace manyworlds::core::collective {
namespace {

void all_reduce(DagBuilder& dag, const Shape& shape) {
  RecursiveExchange exchange(dag, shape.members);
  const std::uint32_t size = exchange.size();
  dag.set_block_partition(size);
  const auto all_blocks = [&](std::uint32_t) { return BlockSet{0, size}; };
  exchange.fold(all_blocks, Effect::reduce);
  // The callbacks return the blocks that participant v sends; fold() and unfold() serve members beyond a power of two.
  // After the step at `distance`, participant v holds partial sums of the blocks whose number agrees with v in that bit
  // and all lower ones.
  for (std::uint32_t distance = 1; distance < size; distance *= 2)
    exchange.step(
        distance,
        [&](std::uint32_t v) {
          return BlockSet{(v ^ distance) % (2 * distance), size / (2 * distance), 2 * distance};
        },
        Effect::reduce);
  for (std::uint32_t distance = size / 2; distance > 0; distance /= 2)
    exchange.step(
        distance,
        [&](std::uint32_t v) {
          return BlockSet{v % (2 * distance), size / (2 * distance), 2 * distance};
        },
        Effect::copy);
  exchange.unfold(all_blocks);
}

/// Returns the blocks of all members that participants [first, first + count) represent.
BlockSet blocks_of(const RecursiveExchange& exchange, std::uint32_t first, std::uint32_t count) {
  return {exchange.first(first), exchange.first(first + count) - exchange.first(first)};
}

void reduce_scatter(DagBuilder& dag, const Shape& shape) {
  RecursiveExchange exchange(dag, shape.members);
  dag.set_block_partition(shape.members);
  exchange.fold([&](std::uint32_t) { return BlockSet{0, shape.members}; }, Effect::reduce);
  for (std::uint32_t distance = exchange.size() / 2; distance > 0; distance /= 2)
    exchange.step(
        distance, [&](std::uint32_t v) { return blocks_of(exchange, (v ^ distance) / distance * distance, distance); },
        Effect::reduce);
  exchange.unfold([&](std::uint32_t member) { return BlockSet{member}; });
}

void all_gather(DagBuilder& dag, const Shape& shape) {
  RecursiveExchange exchange(dag, shape.members);
  dag.set_block_partition(shape.members);
  exchange.fold([&](std::uint32_t member) { return BlockSet{member}; }, Effect::copy);
  for (std::uint32_t distance = 1; distance < exchange.size(); distance *= 2)
    exchange.step(
        distance, [&](std::uint32_t v) { return blocks_of(exchange, v / distance * distance, distance); },
        Effect::copy);
  exchange.unfold([&](std::uint32_t) { return BlockSet{0, shape.members}; });
}

void add(DagBuilder& dag, const Shape& shape) {
  if (shape.kind == Kind::all_reduce)
    all_reduce(dag, shape);
  else if (shape.kind == Kind::reduce_scatter)
    reduce_scatter(dag, shape);
  else
    all_gather(dag, shape);
}

/// An all-reduce begins with neighbours, so that its largest exchanges stay inside nodes; a reduce-scatter or
/// all-gather alone has its largest between nodes.
CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t shard = s.bytes / s.per_node, part = s.bytes / s.nodes;
  CostTerms terms{s.passes * log2_up(s.per_node), s.passes * log2_up(s.nodes), 0, 0};
  if (shape.kind == Kind::all_reduce)
    terms.intra_node_bytes = s.passes * (s.bytes - shard),
    terms.inter_node_bytes = s.passes * (shard - shard / s.nodes);
  else
    terms.intra_node_bytes = s.passes * (part - part / s.per_node),
    terms.inter_node_bytes = s.passes * (s.bytes - part);
  if (!is_power_of_two(s.members)) {  // folding: two steps more, counted with all bytes
    (s.per_node > 1 ? terms.intra_node_steps : terms.inter_node_steps) += 2;
    (s.per_node > 1 ? terms.intra_node_bytes : terms.inter_node_bytes) += 2 * s.bytes;
  }
  return terms;
}

}  // namespace

AlgorithmInfo halving_doubling_algorithm() {
  return {.help = "recursive halving and doubling (Rabenseifner): as many bytes as a ring in 2 log n steps",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter},
          .add = add,
          .cost = cost,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
