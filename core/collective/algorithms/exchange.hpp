// Exchanges between members two by two, step by step, as recursive algorithms make them. Beyond a power of two, members
// first fold into their neighbours and are given the result at the end (Thakur, Rabenseifner and Gropp, IJHPCA 2005,
// section 4).
#pragma once

#include "core/collective/dag/dag_builder.hpp"

namespace manyworlds::core::collective {

/// Of `members`, those that exchange: the largest power of two. The first `folded` of them stand for two members each.
class Exchange {
 public:
  Exchange(DagBuilder& dag, std::uint32_t members);

  std::uint32_t size() const { return size_; }
  /// The member behind participant v.
  std::uint32_t member(std::uint32_t v) const { return v < folded_ ? 2 * v + 1 : v + folded_; }
  /// The first of the members that v stands for; that of size() is the number of members.
  std::uint32_t first(std::uint32_t v) const { return v < folded_ ? 2 * v : v + folded_; }

  /// The members without a part of their own hand over `part_of(member)`.
  template <class PartOf>
  void fold(PartOf part_of, Effect effect) {
    for (std::uint32_t v = 0; v < folded_; ++v) send(2 * v, 2 * v + 1, part_of(2 * v), effect);
    next_step();
  }
  /// They are given it.
  template <class PartOf>
  void unfold(PartOf part_of) {
    for (std::uint32_t v = 0; v < folded_; ++v) send(2 * v + 1, 2 * v, part_of(2 * v), Effect::copy);
    next_step();
  }
  /// Every participant sends `part_of(v)` to the one `distance` (a power of two) away.
  template <class PartOf>
  void step(std::uint32_t distance, PartOf part_of, Effect effect) {
    for (std::uint32_t v = 0; v < size_; ++v) send(member(v), member(v ^ distance), part_of(v), effect);
    next_step();
  }

 private:
  /// Nobody begins a step before its own last one is over: it has sent and received.
  void send(std::uint32_t from, std::uint32_t to, const Part& part, Effect effect);
  void next_step();

  DagBuilder& dag_;
  std::uint32_t size_ = 1, folded_ = 0;
  struct Last {
    std::uint32_t sent = kNoNode, received = kNoNode;
  };
  std::vector<Last> last_, now_;  // by member
};

}  // namespace manyworlds::core::collective
