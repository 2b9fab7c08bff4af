// The ranks of an episode's collectives in ties: by group, and by the order in which a group runs them. Ranks of those
// that join later fit in between, so few joinings move the others.
#pragma once

#include <cstdint>
#include <vector>

namespace manyworlds::core::step {

class TieRanks {
 public:
  /// Of the next collective of `group`, groups being numbered as they join. A new group stands at `place` among those
  /// so far, and those behind it move on; `place` of others is not looked at. True if ranks before it changed.
  bool add(std::uint32_t group, std::uint32_t place);
  /// By collective, in the order of add().
  const std::vector<std::uint32_t>& all() const { return ranks_; }

 private:
  void widen();

  std::uint32_t room_ = 16;                  // ranks that each group has
  std::vector<std::uint32_t> place_, many_;  // by group: among the groups, and collectives so far
  std::vector<std::uint32_t> ranks_;
};

}  // namespace manyworlds::core::step
