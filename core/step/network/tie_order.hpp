// The tie order of an episode's collectives: by group, then by the order in which a group runs them. Numbers are spaced
// so that later collectives fit in between; few additions change the numbers of earlier ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace manyworlds::core::step {

class TieOrder {
 public:
  /// Adds the next collective of `group`; groups are numbered in the order in which they are first added. A new group
  /// is inserted at `position` among the earlier ones; `position` is ignored for a known group. Returns whether numbers
  /// of earlier collectives changed.
  bool add(std::uint32_t group, std::uint32_t position);
  /// Adds the collectives of `other`, in their order. `groups` has the number that each of its groups has here, and the
  /// position of a new one among those before it.
  void absorb(const TieOrder& other, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& groups);
  /// Returns the numbers of all collectives, in the order of add().
  const std::vector<std::uint32_t>& all() const { return numbers_; }

 private:
  void widen();

  std::uint32_t reserved_ = 16;  // numbers reserved for each group
  std::vector<std::uint32_t> position_,
      count_;  // by group: its position among the groups, and its number of collectives
  std::vector<std::uint32_t> numbers_;
};

}  // namespace manyworlds::core::step
