// A training step in closed form: kernel times from the same cost model as in simulations, collectives by an alpha-beta
// model, the pipeline by its bubble formula. It simulates nothing and takes microseconds to milliseconds. It is used to
// fit constants, since a fit needs the step time of every measured row again for every trial value.
// docs/model/compute.md describes where and why packet simulations differ.
#pragma once

#include "core/step/estimate/strided_collectives.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// The step time, which is the sum of the other fields, in seconds.
struct ClosedForm {
  double step_s = 0;
  double pipeline_s = 0;   // kernels and tensor-parallel communication of all micro-batches on the slowest stage
  double bubble_s = 0;     // filling and draining the pipeline, transfers included
  double gradients_s = 0;  // exposed communication of gradients and parameters
  double optimizer_s = 0;
};

/// Returns the step time of a configuration, which needs no graph. Its sizes must be valid
/// (experiments/validity/validity.hpp).
ClosedForm closed_form(const Configuration& configuration, const Links& links);

}  // namespace manyworlds::core::step
