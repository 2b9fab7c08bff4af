#include "farm/search/search_rounds.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::farm {

double best_of(const std::vector<double>& rates) {
  double best = 0;
  for (const double rate : rates)
    if (!std::isnan(rate)) best = std::max(best, rate);
  return best;
}

SearchStatus search_status(const std::vector<double>& bounds, const std::vector<double>& simulated,
                           const std::vector<double>& others) {
  MANYWORLDS_CHECK(simulated.size() <= bounds.size(), "{} of {} simulated", simulated.size(), bounds.size());
  SearchStatus result;
  result.simulated = simulated.size();
  const double best = best_of(simulated);
  double highest = 0;
  const auto count = [&](double bound) {
    if (bound <= best) return;
    ++result.open;
    highest = std::max(highest, bound);
  };
  std::for_each(bounds.begin() + std::ssize(simulated), bounds.end(), count);
  std::for_each(others.begin(), others.end(), count);
  if (result.open > 0 && best > 0) result.max_gain = highest / best - 1;
  return result;
}

std::size_t next_round(const SearchStatus& so_far, std::size_t layouts, std::size_t max_layouts, bool limited_time) {
  constexpr std::size_t kFirstInTime = 2;
  std::size_t wanted = so_far.simulated + std::min(so_far.open, so_far.simulated);
  if (so_far.simulated == 0)
    wanted = limited_time ? kFirstInTime : kFirstRound;
  else if (so_far.simulated < kFirstRound)
    wanted = std::max(wanted, std::min(kFirstRound, 2 * so_far.simulated));
  return std::min({wanted, layouts, max_layouts});
}

std::string key_of_round(const std::string& simulated) {
  constexpr std::size_t kDigits = 6;
  return core::sharing::KeyWriter("round").text(simulated).finish().hex().substr(0, kDigits);
}

}  // namespace manyworlds::farm
