// What measured steps tell of a GPU, after its kernels and its communication library.
#pragma once

#include <functional>

#include "experiments/measured/training_steps.hpp"
#include "farm/calibration/calibrated_part.hpp"

namespace manyworlds::farm {

/// Simulates steps and compares them with their measured times.
using SimulateSteps = std::function<Comparison(const std::vector<experiments::measured::TrainingStep>& steps)>;

/// Returns the steps with these constants of their GPU.
std::vector<experiments::measured::TrainingStep> with_constants(std::vector<experiments::measured::TrainingStep> steps,
                                                                const std::vector<CalibratedConstant>& constants);

/// Fits the constants that steps alone tell, except those in `known`, which parts have told and with which the steps
/// are predicted; the steps' own settings are those before any calibration. Models with experts are predicted, not
/// fitted to.
CalibratedPart calibrate_steps(const std::vector<experiments::measured::TrainingStep>& steps,
                               const std::vector<CalibratedConstant>& known, const SimulateSteps& simulate);

}  // namespace manyworlds::farm
