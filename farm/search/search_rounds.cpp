#include "farm/search/search_rounds.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace manyworlds::farm {

double best_of(const std::vector<double>& rates) {
  double best = 0;
  for (const double rate : rates)
    if (!std::isnan(rate)) best = std::max(best, rate);
  return best;
}

SearchStatus search_status(const std::vector<double>& bounds, const std::vector<double>& simulated) {
  MANYWORLDS_CHECK(simulated.size() <= bounds.size(), "{} of {} simulated", simulated.size(), bounds.size());
  SearchStatus result;
  result.simulated = simulated.size();
  const double best = best_of(simulated);
  for (std::size_t i = simulated.size(); i < bounds.size() && bounds[i] > best; ++i) ++result.open;
  if (result.open > 0 && best > 0) result.max_gain = bounds[simulated.size()] / best - 1;
  return result;
}

std::size_t next_round(const SearchStatus& so_far, std::size_t layouts, std::size_t max_layouts) {
  const std::size_t wanted =
      so_far.simulated == 0 ? kFirstRound : so_far.simulated + std::min(so_far.open, so_far.simulated);
  return std::min({wanted, layouts, max_layouts});
}

}  // namespace manyworlds::farm
