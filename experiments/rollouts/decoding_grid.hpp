// The decoding steps that are simulated, so that the time of every other one follows: numbers of samples that are
// powers of two, and a few lengths of the cache; and some between these, by which the error of that is measured.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/rollouts/decoding.hpp"

namespace manyworlds::experiments::phases {

/// A decoding step: so many samples, each with so many tokens in its cache.
struct DecodingPoint {
  std::int64_t samples = 0, length = 0;
  auto operator<=>(const DecodingPoint&) const = default;
};

struct DecodingGrid {
  std::vector<std::int64_t> samples;               // ascending; powers of two, and the most that are in flight
  std::vector<std::vector<std::int64_t>> lengths;  // of each, ascending; at least one
  std::vector<DecodingPoint> checks;               // between neighbours of `samples` and of `lengths`

  bool empty() const { return samples.empty(); }
  /// Returns the last place in `samples` that is not above `count`, which is between its first and its last.
  std::size_t below(std::int64_t count) const;
};

/// Returns the grid that has every step of what replicas do inside it; empty if none decodes. Lengths are the least,
/// the middle and the greatest mean length that stretches with about as many samples have.
DecodingGrid decoding_grid(const std::vector<Decoding>& replicas);

}  // namespace manyworlds::experiments::phases
