// `measured` of a sweep: what this very experiment took, by the user's own measurement.
#pragma once

#include "experiments/sweep/experiment.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// Throws InputError at what it may not be.
MeasuredStep read_measured(const import::Node& node);

}  // namespace manyworlds::experiments
