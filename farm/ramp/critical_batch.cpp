#include "farm/ramp/critical_batch.hpp"

#include <algorithm>

namespace manyworlds::farm::ramp {

double CriticalBatch::steps_after(double from, double batch, double more) const {
  constexpr int kRounds = 1'000;
  constexpr double kRounding = 1e-15;
  const double before = tokens(from);
  double steps = from + more / (batch + at(from));
  for (int round = 0; round < kRounds; ++round) {
    const double excess = tokens(steps) - before + batch * (steps - from) - more;
    const double next = std::max(from, steps - excess / (batch + at(steps)));
    if (next >= steps - kRounding * steps) return steps;
    steps = next;
  }
  return steps;
}

}  // namespace manyworlds::farm::ramp
