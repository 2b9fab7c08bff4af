// Pairwise exchanges in steps, as recursive algorithms use them. If the number of members is not a power of two, some
// members first fold: they send their data to a neighbour, and receive the result at the end (Thakur, Rabenseifner and
// Gropp, IJHPCA 2005, section 4).
#pragma once

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

/// The participants of the exchange: the largest power of two that is at most `members`. Each of the first `folded`
/// participants represents two members.
class RecursiveExchange {
 public:
  RecursiveExchange(DagBuilder& dag, std::uint32_t members);

  std::uint32_t size() const { return size_; }
  /// Returns the member that acts as participant v.
  std::uint32_t member(std::uint32_t v) const { return v < folded_ ? 2 * v + 1 : v + folded_; }
  /// Returns the first of the members that participant v represents; for v = size(), the number of members.
  std::uint32_t first(std::uint32_t v) const { return v < folded_ ? 2 * v : v + folded_; }

  /// Every folded member sends `blocks_for(member)` to its representative.
  template <class BlocksFor>
  void fold(BlocksFor blocks_for, Effect effect) {
    for (std::uint32_t v = 0; v < folded_; ++v) send(2 * v, 2 * v + 1, blocks_for(2 * v), effect);
    next_step();
  }
  /// Every folded member receives `blocks_for(member)` from its representative.
  template <class BlocksFor>
  void unfold(BlocksFor blocks_for) {
    for (std::uint32_t v = 0; v < folded_; ++v) send(2 * v + 1, 2 * v, blocks_for(2 * v), Effect::copy);
    next_step();
  }
  /// Every participant sends `blocks_for(v)` to the participant at distance `distance`, a power of two.
  template <class BlocksFor>
  void step(std::uint32_t distance, BlocksFor blocks_for, Effect effect) {
    for (std::uint32_t v = 0; v < size_; ++v) send(member(v), member(v ^ distance), blocks_for(v), effect);
    next_step();
  }

 private:
  /// Adds a transfer of the current step. It waits until both members have finished their sends and receives of the
  /// previous step.
  void send(std::uint32_t from, std::uint32_t to, const BlockSet& block_set, Effect effect);
  void next_step();

  DagBuilder& dag_;
  std::uint32_t size_ = 1, folded_ = 0;
  struct LastTransfers {
    std::uint32_t sent = kNoNode, received = kNoNode;
  };
  std::vector<LastTransfers> last_, current_;  // by member
};

}  // namespace manyworlds::core::collective
