#include "farm/phases/composition.hpp"

#include <algorithm>

namespace manyworlds::farm::phases {
namespace {

std::vector<double> busy_of(const std::vector<TimedPhase>& phases, std::size_t pools) {
  std::vector<double> busy(pools, 0);
  for (const TimedPhase& phase : phases)
    for (const std::size_t pool : phase.pools) busy[pool] += phase.time_s;
  return busy;
}

}  // namespace

Composition synchronous(const std::vector<TimedPhase>& phases, std::size_t pools) {
  Composition result;
  result.busy_s = busy_of(phases, pools);
  std::vector<double> free(pools, 0), ends;
  for (const TimedPhase& phase : phases) {
    double begin = 0;
    for (const std::size_t pool : phase.pools) begin = std::max(begin, free[pool]);
    for (const std::size_t before : phase.after) begin = std::max(begin, ends.at(before));
    result.begins.push_back(begin);
    ends.push_back(begin + phase.time_s);
    for (const std::size_t pool : phase.pools) free[pool] = ends.back();
    result.iteration_s = std::max(result.iteration_s, ends.back());
  }
  return result;
}

Composition asynchronous(const std::vector<TimedPhase>& phases, std::size_t pools) {
  Composition result;
  result.busy_s = busy_of(phases, pools);
  result.iteration_s = *std::max_element(result.busy_s.begin(), result.busy_s.end());
  return result;
}

}  // namespace manyworlds::farm::phases
