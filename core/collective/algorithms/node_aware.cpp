// Node-aware all-to-all: a member sends all data for local index r (of any node) to the member with local index r of
// its own node, which forwards it along its rail, for a whole node at once. Messages between nodes are fewer and
// larger, and none changes rails (hierarchical all-to-all of DeepSpeed-MoE, Rajbhandari et al. 2022, section 5.2; NCCL
// 2.12's PXN). Both levels are pairwise exchanges.
#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

/// The transfers of each member in one round, which must finish before its next round.
struct RoundTransfers {
  std::vector<std::uint32_t> sent, received;
  explicit RoundTransfers(std::uint32_t members) : sent(members, kNoNode), received(members, kNoNode) {}
};

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members, p = shape.per_node, nodes = n / p;
  dag.set_block_partition(n, n);
  RoundTransfers previous(n), current(n);
  const auto exchange = [&](std::uint32_t from, std::uint32_t to, const BlockSet& block_set,
                            const std::vector<std::vector<std::uint32_t>>& gathered) {
    std::vector<std::uint32_t> after{previous.sent[from], previous.received[from], previous.sent[to],
                                     previous.received[to]};
    if (!gathered.empty()) after.insert(after.end(), gathered[from].begin(), gathered[from].end());
    current.sent[from] = current.received[to] = dag.add(from, to, block_set, Effect::copy, after);
  };

  std::vector<std::vector<std::uint32_t>> gathered(n);  // by member: what it received inside its node
  for (std::uint32_t round = 1; round < p; ++round) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t rail = (i % p + round) % p, neighbour = i / p * p + rail;
      exchange(i, neighbour, {i * n + rail, nodes, p}, {});
      gathered[neighbour].push_back(current.sent[i]);
    }
    previous = current;
  }
  for (std::uint32_t i = 0; i < n; ++i)
    if (gathered[i].size() > 1) gathered[i] = {dag.add_join(i, gathered[i])};
  for (std::uint32_t round = 1; round < nodes; ++round) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t peer = (i + round * p) % n;
      exchange(i, peer, {i / p * p * n + peer, p, n}, gathered);
    }
    previous = current;
  }
}

CostTerms cost(const Shape&, const CollectiveSizes& s) {
  return {s.per_node - 1, s.nodes - 1, s.bytes - s.bytes / s.per_node, s.bytes - s.bytes / s.nodes};
}

Algorithm simplified(const Shape& shape) {
  return has_one_level(shape) ? Algorithm::pairwise : Algorithm::node_aware;
}

}  // namespace

AlgorithmInfo node_aware_algorithm() {
  return {.help = "inside the node to the member of the destination's rail, then along the rail",
          .kinds = {Kind::all_to_all},
          .add = add,
          .cost = cost,
          .considered = on_two_levels,
          .simplified = simplified};
}

}  // namespace manyworlds::core::collective
