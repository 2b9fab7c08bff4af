#include "experiments/sweep/sampling.hpp"

#include "core/base/error.hpp"
#include "core/base/hash.hpp"

namespace manyworlds::experiments {

GridPermutation::GridPermutation(std::uint64_t points, std::uint64_t seed) : points_(points), seed_(seed) {
  MANYWORLDS_CHECK(points >= 1 && points <= kMaxPoints, "a grid of {} points", points);
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < points) ++half_bits_;
}

std::uint64_t GridPermutation::at(std::uint64_t index) const {
  constexpr std::uint64_t kRounds = 4;
  MANYWORLDS_CHECK(index < points_, "place {} of {}", index, points_);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_, right = index & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t mixed = left ^ (core::decision_hash(seed_, right, round) & mask);
      left = right;
      right = mixed;
    }
    index = (left << half_bits_) | right;
  } while (index >= points_);
  return index;
}

}  // namespace manyworlds::experiments
