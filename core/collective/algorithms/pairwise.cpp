// Pairwise-exchange all-to-all: in round k each member sends to the member k positions after it and receives from the
// one k positions before it; a member begins a round when its previous round is complete (Thakur et al., IJHPCA 2005,
// section 4.5). On the full mesh of one node it sends to all at once: RCCL spreads its sends over peers, and each has a
// link of its own.
#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {
namespace {

bool at_once(const Shape& shape) {
  return shape.node_mesh && shape.per_node == shape.members;
}

void add(DagBuilder& dag, const Shape& shape) {
  const std::uint32_t n = shape.members;
  dag.set_block_partition(n, n);
  std::vector<std::uint32_t> previous(n, kNoNode), current(n);  // by sender: its transfer in a round
  for (std::uint32_t round = 1; round < n; ++round) {
    const std::uint32_t previous_round = round - 1;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t destination = (i + round) % n;
      current[i] = dag.add(i, destination, {i * n + destination}, Effect::copy,
                           {previous[i], previous[(i + n - previous_round) % n], previous[destination],
                            previous[(destination + n - previous_round) % n]});
    }
    if (!at_once(shape)) previous.swap(current);
  }
}

/// A row is a round; row r has the transfers from member i to member i + r + 1.
class PairwiseGenerator final : public TransferGenerator {
 public:
  PairwiseGenerator(const Shape& shape, std::uint32_t width) : TransferGenerator(shape, width) {
    MANYWORLDS_CHECK(shape.split.even(), "{} cannot be generated", shape.text());
  }

  /// Blocks of unequal sizes are those for the first members.
  std::uint32_t least_width() const override {
    if (!has_equal_blocks(1)) return shape_.members;
    return shape_.per_node == shape_.members ? 1 : shape_.per_node;
  }
  std::uint64_t transfer_rows() const override { return shape_.members - 1; }
  std::uint32_t pair_rows() const override { return shape_.members - 1; }
  std::pair<std::uint32_t, std::uint32_t> ends(std::uint32_t pair) const override {
    return {pair % width_, (pair % width_ + pair / width_ + 1) % width_};
  }
  Transfer transfer(std::uint32_t number) const override {
    const std::uint32_t n = shape_.members, source = number % width_;
    const std::uint32_t destination = (source + number / width_ + 1) % n;
    return transfer_between(source, destination, number, chunk_bytes(shape_.bytes, n, destination));
  }
  /// It waits for all that its members did in the round before: two transfers each, one of which may be common to both.
  std::uint32_t wait_count(std::uint32_t number) const override {
    const std::uint32_t row = number / width_;
    if (row == 0) return 2;
    return (2 * row + 1) % shape_.members == 0 ? 3 : 4;
  }
  void add_successors(std::uint32_t number, std::vector<std::uint32_t>& successors) const override {
    const std::uint32_t n = shape_.members, row = number / width_, source = number % width_;
    if (row + 2 >= n) return;
    const std::uint32_t destination = (source + row + 1) % n, next_round = row + 2;
    // Both members send and receive in the next round.
    std::array<std::uint32_t, 4> senders{source, destination, (source + n - next_round) % n,
                                         (destination + n - next_round) % n};
    std::sort(senders.begin(), senders.end());
    const auto end = std::unique(senders.begin(), senders.end());
    for (auto sender = senders.begin(); sender != end; ++sender)
      successors.push_back((row + 1) * width_ + *sender % width_);
  }
  void add_entry(std::uint32_t member, std::vector<std::uint32_t>& entry) const override {
    const std::uint32_t before = (member + width_ - 1) % width_;
    entry.insert(entry.end(), {std::min(member, before), std::max(member, before)});
  }
  std::uint32_t transfer_count(std::uint32_t) const override { return 2 * (shape_.members - 1); }
};

std::shared_ptr<const TransferGenerator> generator(const Shape& shape, std::uint32_t width) {
  const bool in_rounds = shape.split.even() && !at_once(shape);
  return in_rounds ? std::make_shared<const PairwiseGenerator>(shape, width) : nullptr;
}

CostTerms cost(const Shape& shape, const CollectiveSizes& s) {
  const std::int64_t block = s.bytes / s.members;
  if (at_once(shape)) return {1, 0, block, 0};
  return {s.per_node - 1, s.members - s.per_node, block * (s.per_node - 1), block * (s.members - s.per_node)};
}

}  // namespace

AlgorithmInfo pairwise_algorithm() {
  return {.help = "one partner after the other, on the full mesh of a node all at once",
          .kinds = {Kind::all_to_all},
          .add = add,
          .cost = cost,
          .generator = generator,
          .considered_if_calibrated = everywhere,
          .ignores_nodes = always,
          .uses_mesh = at_once};
}

}  // namespace manyworlds::core::collective
