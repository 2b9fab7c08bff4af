// Published steps that differ in one thing alone (the GPU, the precision, what is recomputed, fused or overlapped), and
// what that is worth, as measured and as predicted.
#pragma once

#include "experiments/measured/training_steps.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Returns one row for each pair of steps of `compared` whose settings are the same but for one switch: the time before
/// over the time after, measured and predicted. Families are switches. Several steps of one side count as their mean.
/// Steps that are excluded from their family are compared with those that are excluded for the same reason.
Comparison compare_switches(const std::vector<experiments::measured::TrainingStep>& steps, const Comparison& compared);

}  // namespace manyworlds::farm
