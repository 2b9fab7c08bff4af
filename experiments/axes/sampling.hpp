// Points of a grid in random order: each point occurs once, and the grid is never enumerated. A document says in
// `sample` how many are taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "experiments/tree/yaml.hpp"

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

/// Sorts `rows`, each of which has the key in the same place of `keys`.
template <class Row>
void sort_by(const std::vector<std::uint64_t>& keys, std::vector<Row>& rows) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

/// A number of valid points that are drawn from the grid with a seed.
struct Sample {
  std::int64_t experiments = 0;
  std::int64_t seed = 1;
  import::Node place;  // location of `experiments`
};

/// Reads `sample`. Throws InputError at what it may not be.
Sample read_sample(const import::Node& node);
/// Reads one entry of it; `place` is where its name stands.
void read_sample_entry(const std::string& name, const import::Node& value, const import::Node& place, Sample& to);

}  // namespace manyworlds::experiments
