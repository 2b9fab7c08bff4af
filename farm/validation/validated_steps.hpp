// Measured training steps through the farm: the sweep of all that can be simulated, and what its results say of them.
#pragma once

#include <string>
#include <vector>

#include "experiments/measured/training_steps.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/validation/validation.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The tick of the streams' clock in measured steps. Long pipelines repeat themselves but for a few nanoseconds, and
/// are simulated in half the time with it; what it changes in a step is a thousandth of what predictions are off by
/// (docs/model.md).
inline constexpr std::int64_t kMeasuredTickNs = 200;

/// One experiment for each row that can be simulated, two where one layer was measured; its only axis is the row's id.
/// Streams tick every kMeasuredTickNs.
/// Throws InputError where there is none.
experiments::Sweep sweep_of(const std::vector<experiments::measured::TrainingStep>& steps);

/// `results` are those of sweep_of(steps).
Comparison compare(const std::vector<experiments::measured::TrainingStep>& steps, const io::Results& results);

/// A figure of the catalog that predictions rest on and that was fitted or guessed, of a GPU that rows used.
struct Constant {
  std::string gpu, name, value, unit, certainty, meaning, source;
};
std::vector<Constant> constants_of(const std::vector<experiments::measured::TrainingStep>& steps,
                                   const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
