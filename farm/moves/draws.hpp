// Random draws by a seed: the same on every machine.
#pragma once

#include <cstdint>

#include "core/base/hash.hpp"

namespace manyworlds::farm {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(core::splitmix64(seed)) {}

  /// Returns a number from 0 to `count` - 1; `count` is at least 1.
  std::uint64_t below(std::uint64_t count) {
    state_ += core::kSplitMixIncrement;
    return core::splitmix64(state_) % count;
  }
  /// Returns a step that is 1 every other time, 2 every fourth, 4 every eighth, …, and at most `most`, which is at
  /// least 1.
  std::int64_t step(std::int64_t most) {
    std::int64_t step = 1;
    while (2 * step <= most && below(2) == 0) step *= 2;
    return step;
  }

 private:
  std::uint64_t state_;
};

}  // namespace manyworlds::farm
