#include "core/step/network/tie_ranks.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::step {

void TieRanks::widen() {
  for (std::uint32_t& rank : ranks_) rank += rank / room_ * room_;
  room_ *= 2;
}

bool TieRanks::add(std::uint32_t group, std::uint32_t place) {
  bool moved = false;
  if (group == place_.size()) {
    for (std::uint32_t& other : place_) other += other >= place;
    for (std::uint32_t& rank : ranks_)
      if (rank / room_ >= place) rank += room_, moved = true;
    place_.push_back(place);
    many_.push_back(0);
  }
  MANYWORLDS_CHECK(group < place_.size(), "group {} joins after {}", group, place_.size());
  const bool full = many_[group] == room_;
  MANYWORLDS_CHECK(std::uint64_t{place_.size()} * room_ << full <= UINT32_MAX, "{} groups with {} collectives each",
                   place_.size(), room_);
  if (full) widen(), moved = true;
  ranks_.push_back(place_[group] * room_ + many_[group]++);
  return moved;
}

}  // namespace manyworlds::core::step
