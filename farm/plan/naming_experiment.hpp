// Errors of one experiment among many.
#pragma once

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// Calls work(); an InputError of an experiment that is not the only one of its sweep names it.
template <class Work>
void naming_experiment(const experiments::Sweep& sweep, const experiments::Experiment& experiment, const Work& work) {
  try {
    work();
  } catch (const core::InputError& error) {
    if (sweep.experiments.size() == 1) throw;
    throw core::InputError(fmt::format("experiment {}: {}", experiment.id, error.what()));
  }
}

}  // namespace manyworlds::farm
