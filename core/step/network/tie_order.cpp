#include "core/step/network/tie_order.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::step {

void TieOrder::widen() {
  for (std::uint32_t& rank : numbers_) rank += rank / reserved_ * reserved_;
  reserved_ *= 2;
}

bool TieOrder::add(std::uint32_t group, std::uint32_t position) {
  bool moved = false;
  if (group == position_.size()) {
    for (std::uint32_t& other : position_) other += other >= position;
    for (std::uint32_t& rank : numbers_)
      if (rank / reserved_ >= position) rank += reserved_, moved = true;
    position_.push_back(position);
    count_.push_back(0);
  }
  MANYWORLDS_CHECK(group < position_.size(), "group {} joins after {}", group, position_.size());
  const bool full = count_[group] == reserved_;
  MANYWORLDS_CHECK(std::uint64_t{position_.size()} * reserved_ << full <= UINT32_MAX,
                   "{} groups with {} collectives each", position_.size(), reserved_);
  if (full) widen(), moved = true;
  numbers_.push_back(position_[group] * reserved_ + count_[group]++);
  return moved;
}

void TieOrder::absorb(const TieOrder& other, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& groups) {
  std::vector<std::uint32_t> at_position(other.position_.size());
  for (std::uint32_t group = 0; group < at_position.size(); ++group) at_position[other.position_[group]] = group;
  for (const std::uint32_t number : other.numbers_) {
    const auto& [group, position] = groups[at_position[number / other.reserved_]];
    add(group, position);
  }
}

}  // namespace manyworlds::core::step
