// By how much the clocks of ranks differ: a collective ends on all of its ranks at one instant, within microseconds, so
// that the median of how much later it ends by one clock than by another is what that clock is ahead.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace manyworlds::experiments::profiler {

struct RankClock;

class ClockComparison {
 public:
  struct End {
    std::uint32_t trace = 0;
    std::int64_t at = 0;  // ns, by the clock of the trace
  };

  explicit ClockComparison(std::size_t traces) : traces_(traces) {}

  /// Adds the ends of one collective on its ranks.
  void add(const std::vector<End>& ends);
  /// Returns the clocks of all traces against that of the first, directly or by way of others.
  std::vector<RankClock> clocks() const;

 private:
  std::size_t traces_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> later_;  // second than first, by pair
};

}  // namespace manyworlds::experiments::profiler
