#include "farm/search/search_rounds.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace manyworlds::farm {

Settlement settlement(const std::vector<double>& bounds, const std::vector<double>& simulated) {
  MANYWORLDS_CHECK(simulated.size() <= bounds.size(), "{} of {} simulated", simulated.size(), bounds.size());
  Settlement made;
  made.simulated = simulated.size();
  double best = 0;
  for (const double rate : simulated)
    if (!std::isnan(rate)) best = std::max(best, rate);
  for (std::size_t i = simulated.size(); i < bounds.size() && bounds[i] > best; ++i) ++made.open;
  if (made.open > 0 && best > 0) made.at_most = bounds[simulated.size()] / best - 1;
  return made;
}

std::size_t next_round(const Settlement& so_far, std::size_t layouts, std::size_t most) {
  const std::size_t wanted =
      so_far.simulated == 0 ? kFirstRound : so_far.simulated + std::min(so_far.open, so_far.simulated);
  return std::min({wanted, layouts, most});
}

}  // namespace manyworlds::farm
