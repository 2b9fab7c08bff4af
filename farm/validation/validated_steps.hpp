// Measured training steps, simulated by the farm: the sweep of all rows that can be simulated, and their comparison.
#pragma once

#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/measured/training_steps.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/validation/validation.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The tick of the stream clock in measured steps. Long pipelines are periodic except for a few nanoseconds; with ticks
/// they become exactly periodic and take half the time to simulate. Ticks change a step by a thousandth of the
/// prediction error (docs/model/uncertainty.md).
inline constexpr std::int64_t kMeasuredTickNs = 200;

/// Returns a sweep of one experiment per row that can be simulated, or two where one layer was measured; its only axis
/// is the row's id. Streams tick every kMeasuredTickNs. Throws core::InputError if there is no such row.
experiments::Sweep sweep_of(const std::vector<experiments::measured::TrainingStep>& steps);

/// Compares `steps` with `results`, which must be the results of sweep_of(steps).
Comparison compare(const std::vector<experiments::measured::TrainingStep>& steps, const io::Results& results);

/// A fitted or guessed catalog value, of a GPU or a stack (the owner) that rows use, on which predictions depend.
struct Constant {
  std::string owner, name, value, unit, certainty, meaning, source;
};
std::vector<Constant> constants_of(const std::vector<experiments::measured::TrainingStep>& steps,
                                   const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
