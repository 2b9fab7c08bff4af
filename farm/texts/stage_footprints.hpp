// The peak memory of each pipeline rank of an experiment.
#pragma once

#include <vector>

#include "core/memory/footprint.hpp"
#include "core/step/layout/configuration.hpp"

namespace manyworlds::farm {

/// Returns the peak memory footprint of each pipeline rank, part by part: that of the class of ranks with the largest
/// total.
std::vector<core::memory::Footprint> stage_footprints(const core::step::Configuration& configuration);

}  // namespace manyworlds::farm
