// When phases on pools of GPUs begin and end, by arithmetic.
#pragma once

#include <cstddef>
#include <vector>

namespace manyworlds::farm::phases {

struct TimedPhase {
  double time_s = 0;
  std::vector<std::size_t> pools;  // that it keeps busy
  std::vector<std::size_t> after;  // phases before it in the list that it waits for
};

struct Composition {
  double iteration_s = 0;
  std::vector<double> begins;  // of each phase; of an asynchronous iteration empty
  std::vector<double> busy_s;  // of each pool
};

/// One phase at a time on each pool, in their order: each begins when its pools are free and what it waits for has
/// ended.
Composition synchronous(const std::vector<TimedPhase>& phases, std::size_t pools);
/// In a steady state no pool waits for what others do in the same iteration: the one with most to do sets the pace.
Composition asynchronous(const std::vector<TimedPhase>& phases, std::size_t pools);

}  // namespace manyworlds::farm::phases
