// Broadcast along a binomial tree (Thakur, Rabenseifner and Gropp, IJHPCA 2005, section 4.3): in every step, each
// member that has the data sends it to one that does not, at the largest distance first; positions are counted from the
// root. A member's sends are serialized.
#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

void add(DagBuilder& dag, const Shape& shape) {
  dag.set_block_partition(1);
  const std::uint32_t n = shape.members, count = slice_count(shape, shape.bytes);
  std::uint32_t top = 1;
  while (top < n) top *= 2;
  const auto member = [&](std::uint32_t i) { return (i + shape.root()) % n; };
  std::vector<std::uint32_t> last_sent(n, kNoNode);  // each member's last send
  for (std::uint32_t slice = 0; slice < count; ++slice) {
    std::vector<std::uint32_t> received(n, kNoNode);
    for (std::uint32_t distance = top / 2; distance > 0; distance /= 2)
      for (std::uint32_t i = 0; i + distance < n; i += 2 * distance)
        last_sent[i] = received[i + distance] = dag.add(member(i), member(i + distance), {0, 1, 1, slice, count},
                                                        Effect::copy, {received[i], last_sent[i]});
  }
}

CostTerms cost(const Shape&, const CollectiveSizes& s) {
  return {log2_up(s.per_node), log2_up(s.nodes), log2_up(s.per_node) * s.bytes, log2_up(s.nodes) * s.bytes};
}

}  // namespace

AlgorithmInfo binomial_tree_algorithm() {
  return {.help = "those who have it send to those who have not: log n steps",
          .kinds = {Kind::broadcast},
          .add = add,
          .cost = cost,
          .pipelined = true,
          .latency_group = LatencyGroup::tree,
          .ignores_nodes = always};
}

}  // namespace manyworlds::core::collective
