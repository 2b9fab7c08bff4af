// Points of a grid in an order that a seed draws: each comes once, and the grid is never listed.
#pragma once

#include <cstdint>

namespace manyworlds::experiments {

/// A permutation of 0 … points - 1: four Feistel rounds over the smallest even number of bits that holds them, walked
/// until they land inside (Black and Rogaway 2002, section 4). A longer look sees the points of a shorter one first.
class Shuffled {
 public:
  static constexpr std::uint64_t kMostPoints = std::uint64_t{1} << 62;

  /// `points` from 1 to kMostPoints.
  Shuffled(std::uint64_t points, std::uint64_t seed);
  /// The point at `place`, which is below `points`.
  std::uint64_t at(std::uint64_t place) const;

 private:
  std::uint64_t points_, seed_;
  unsigned half_bits_ = 1;
};

}  // namespace manyworlds::experiments
