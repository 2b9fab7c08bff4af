// A few experiments, simulated in this process, one after the other.
#pragma once

#include <cstddef>
#include <functional>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Called before each task with the number of finished tasks and of all tasks, if it is set.
using TaskProgress = std::function<void(std::size_t done, std::size_t all)>;

/// Simulates every experiment of a sweep that does not ask for its best in this process. A task that fails fails those
/// that need it, and no other.
io::Results simulate_here(const experiments::Sweep& sweep, const TaskProgress& on_progress = {});

}  // namespace manyworlds::farm
