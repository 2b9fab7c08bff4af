#include "experiments/profiler_traces/clocks.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "experiments/profiler_traces/collectives.hpp"

namespace manyworlds::experiments::profiler {
namespace {

constexpr std::int64_t kMaxDifference = 100'000'000'000'000'000;  // ns; three years

/// Returns the median, the lower of two, of a list that is not empty.
std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void ClockComparison::add(const std::vector<End>& ends) {
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const bool is_first = ends[0].trace < ends[i].trace;
    const End &a = is_first ? ends[0] : ends[i], &b = is_first ? ends[i] : ends[0];
    if (std::abs(b.at - a.at) <= kMaxDifference) later_[{a.trace, b.trace}].push_back(b.at - a.at);
  }
}

std::vector<RankClock> ClockComparison::clocks() const {
  std::vector<RankClock> clocks(traces_);
  std::vector<std::vector<std::pair<std::uint32_t, RankClock>>> beside(traces_);
  for (const auto& [pair, later] : later_) {
    RankClock clock;
    clock.ahead = median(later);
    clock.compared = std::ssize(later);
    std::vector<std::int64_t> off;
    for (const std::int64_t one : later) off.push_back(std::abs(one - clock.ahead));
    clock.spread = median(std::move(off));
    beside[pair.first].emplace_back(pair.second, clock);
    clock.ahead = -clock.ahead;
    beside[pair.second].emplace_back(pair.first, clock);
  }
  std::vector<bool> known(traces_);
  std::deque<std::uint32_t> open;
  if (traces_ > 0) open.push_back(0), known[0] = true;
  for (; !open.empty(); open.pop_front()) {
    const std::uint32_t from = open.front();
    for (const auto& [to, clock] : beside[from]) {
      if (known[to]) continue;
      known[to] = true;
      clocks[to] = clock;
      clocks[to].ahead += clocks[from].ahead;
      clocks[to].spread += clocks[from].spread;
      open.push_back(to);
    }
  }
  return clocks;
}

}  // namespace manyworlds::experiments::profiler
