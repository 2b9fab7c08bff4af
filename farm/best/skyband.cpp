#include "farm/best/skyband.hpp"

#include <algorithm>
#include <cmath>

#include "farm/best/minimised_objective.hpp"

namespace manyworlds::farm {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

/// Without a gap, whatever a dominated result dominates is dominated by those that dominate it, too.
void Skyband::add(double bound, TwoValues result) {
  if (result.objective == kInfinity || result.other == kInfinity) return;
  if (gap_ == 0 && !may_have(result)) return;
  const Result added{bound, better_by(result.objective, gap_) + kObjectiveRounding * std::abs(result.objective),
                     result};
  results_.insert(std::upper_bound(results_.begin(), results_.end(), added,
                                   [](const Result& a, const Result& b) { return a.needed < b.needed; }),
                  added);
}

bool Skyband::may_have(TwoValues at_best) const {
  if (at_best.objective == kInfinity || at_best.other == kInfinity) return false;
  std::size_t count = 0;
  for (const Result& one : results_) {
    if (one.needed >= at_best.objective) break;
    if (one.bound < at_best.objective && one.values.other <= at_best.other && ++count == k_) return false;
  }
  return true;
}

double Skyband::rival_of(double other) const {
  std::size_t count = 0;
  for (const Result& one : results_)
    if (one.values.other <= other && ++count == k_) return one.values.objective;
  return kInfinity;
}

}  // namespace manyworlds::farm
