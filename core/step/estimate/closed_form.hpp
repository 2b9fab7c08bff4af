// A training step by closed forms: kernels as everywhere, collectives by alpha and beta, the pipeline by its bubble
// formula. It simulates nothing, takes microseconds to milliseconds, and is what constants are fitted with: a fit needs
// the step time of every measured row again for every trial value. docs/model.md tells where and why packets differ.
#pragma once

#include "core/collective/library/library.hpp"
#include "core/step/world/configuration.hpp"

namespace manyworlds::core::step {

/// The links between two GPUs of a node and between two nodes, as a ring uses them.
struct Links {
  collective::Path inside, between;
};

struct ClosedForm {
  double step_s = 0;
  double pipeline_s = 0;   // kernels and tensor-parallel communication of all micro-batches on the slowest stage
  double bubble_s = 0;     // filling and draining the pipeline, transfers included
  double gradients_s = 0;  // exposed communication of gradients and parameters
  double optimizer_s = 0;
};

/// `of` needs no graph. Sizes must be valid (experiments/rules/validity.hpp).
ClosedForm closed_form(const Configuration& of, const Links& links);

}  // namespace manyworlds::core::step
