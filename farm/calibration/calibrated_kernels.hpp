// Constants of a GPU's kernels from measured ones: rates of GEMMs, attention and memory, and the launch.
#pragma once

#include "experiments/kernels/kernel_samples.hpp"
#include "farm/calibration/calibrated_part.hpp"

namespace manyworlds::farm {

/// Returns a GPU with these constants.
core::compute::Gpu with_constants(const core::compute::Gpu& gpu, const std::vector<CalibratedConstant>& constants);

/// Fits the constants that matter to the samples, from those of `start`.
CalibratedPart calibrate_kernels(const std::vector<experiments::import::KernelSample>& samples,
                                 const core::compute::Gpu& start);

}  // namespace manyworlds::farm
