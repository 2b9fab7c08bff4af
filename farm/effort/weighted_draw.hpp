// Drawing items with unequal probabilities, and the total of all that some drawn ones tell (Hansen and Hurwitz 1943).
#pragma once

#include <cstdint>
#include <vector>

namespace manyworlds::farm {

/// Draws items, each in proportion to its weight, with replacement. The same weights give the same items.
class WeightedDraw {
 public:
  WeightedDraw() = default;
  explicit WeightedDraw(const std::vector<double>& weights);
  /// Returns whether no item has a weight.
  bool is_empty() const { return up_to_.empty() || up_to_.back() == 0; }
  /// Returns the item with that number among those drawn.
  std::uint32_t item(std::uint64_t number) const;
  double probability(std::uint32_t item) const;

 private:
  std::vector<double> up_to_;  // by item: the sum of weights up to it
};

struct DrawnTotal {
  double total = 0;
  double error = 0;  // standard error; 0 for one estimate
};
/// Returns the mean of estimates of a total, each from one drawn item. There must be one at least.
DrawnTotal total_of(const std::vector<double>& estimates);

}  // namespace manyworlds::farm
