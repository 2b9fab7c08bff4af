// NCCL constants of GPUs that were not calibrated: they are borrowed from the calibrated GPU with the nearest link
// rate.
#pragma once

#include "experiments/config/experiment_config.hpp"
#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

/// If protocol `calibrated` is chosen and the GPU has no library_launch_us, fills in the missing library constants,
/// scales rates by the ratio of link rates, and stores the lender's name in cluster.gpu.library_from. Returns the key
/// of a constant that a calibrated GPU lacks, or of library_launch_us if no GPU is calibrated; empty if none is
/// missing.
std::string borrow_calibration(Settings& settings, const Catalog& catalog);

/// Returns whether an option of a GPU is a constant of its communication library.
bool is_library_constant(const std::string& option);

/// Returns "no", "yes", or the GPU whose constants were borrowed, for tables and messages.
std::string describe_calibration(const core::collective::Library& library);

}  // namespace manyworlds::experiments
