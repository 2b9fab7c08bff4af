// Points of a grid in random order: each point occurs once, and the grid is never enumerated.
#pragma once

#include <cstdint>

namespace manyworlds::experiments {

/// A permutation of 0 … points - 1: four Feistel rounds over the smallest even number of bits that holds them, repeated
/// until the result is in range (Black and Rogaway 2002, section 4). A longer sample begins with the points of a
/// shorter one.
class GridPermutation {
 public:
  static constexpr std::uint64_t kMaxPoints = std::uint64_t{1} << 62;

  /// Requires 1 <= points <= kMaxPoints.
  GridPermutation(std::uint64_t points, std::uint64_t seed);
  /// Returns the point at position `index`. Requires index < points.
  std::uint64_t at(std::uint64_t index) const;

 private:
  std::uint64_t points_, seed_;
  unsigned half_bits_ = 1;
};

}  // namespace manyworlds::experiments
