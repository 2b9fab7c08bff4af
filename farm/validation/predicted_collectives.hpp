// The packet simulation's prediction of a measured collective: `manyworlds net --collective` on the same machines.
#pragma once

#include <optional>
#include <string>

#include "experiments/config/graphs.hpp"
#include "experiments/measured_collectives/collectives.hpp"

namespace manyworlds::farm {

struct PredictedCollective {
  std::string id, system, op, gpu, family;
  std::int64_t ranks = 0, nodes = 0, bytes = 0;
  double measured_us = 0;
  std::optional<double> predicted_us;  // absent if it cannot be simulated
  std::string reason, detail;          // why there is no prediction
  std::string algorithm;               // algorithm and protocol of the simulated collective
  std::string calibrated;              // "yes", or whose calibration was borrowed
  bool excluded_from_family = false;
};

/// Simulates the collective alone, from the common entry of all members until the last has left. `graphs` is shared
/// between calls.
PredictedCollective predict(const experiments::measured::MeasuredCollective& row, experiments::GraphCache& graphs);

}  // namespace manyworlds::farm
