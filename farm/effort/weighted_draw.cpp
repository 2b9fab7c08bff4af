#include "farm/effort/weighted_draw.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/hash.hpp"

namespace manyworlds::farm {

WeightedDraw::WeightedDraw(const std::vector<double>& weights) : up_to_(weights.size()) {
  std::partial_sum(weights.begin(), weights.end(), up_to_.begin());
}

std::uint32_t WeightedDraw::item(std::uint64_t number) const {
  const double at = core::unit_interval(core::splitmix64(number)) * up_to_.back();
  return static_cast<std::uint32_t>(std::upper_bound(up_to_.begin(), up_to_.end(), at) - up_to_.begin());
}

double WeightedDraw::probability(std::uint32_t item) const {
  return (up_to_[item] - (item == 0 ? 0 : up_to_[item - 1])) / up_to_.back();
}

DrawnTotal total_of(const std::vector<double>& estimates) {
  const auto count = static_cast<double>(estimates.size());
  DrawnTotal result;
  result.total = std::accumulate(estimates.begin(), estimates.end(), 0.0) / count;
  double squares = 0;
  for (const double estimate : estimates) squares += (estimate - result.total) * (estimate - result.total);
  if (estimates.size() > 1) result.error = std::sqrt(squares / (count * (count - 1)));
  return result;
}

}  // namespace manyworlds::farm
