// Constants of the communication library on a GPU from measured collectives. While constants are tried, a closed form
// replaces the packet simulation, to which each row is scaled, so that it only contributes relative changes.
#pragma once

#include "experiments/measured_collectives/collectives.hpp"
#include "farm/calibration/calibrated_part.hpp"

namespace manyworlds::farm {

/// Fits the constants that matter to the rows, from those of their settings. Throws core::InputError for rows of
/// several versions of the library.
CalibratedPart calibrate_library(const std::vector<experiments::measured::MeasuredCollective>& rows);

}  // namespace manyworlds::farm
