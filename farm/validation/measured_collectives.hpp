// What the packet simulation says of a measured collective: the same as `manyworlds net --collective` on its machines.
#pragma once

#include <optional>
#include <string>

#include "experiments/config/graphs.hpp"
#include "experiments/measured/collectives.hpp"

namespace manyworlds::farm {

struct PredictedCollective {
  std::string id, system, op, gpu, family;
  std::int64_t ranks = 0, nodes = 0, bytes = 0;
  double measured_us = 0;
  std::optional<double> predicted_us;  // absent where it cannot be run
  std::string reason, detail;          // why not
  std::string did;                     // algorithm and protocol, of what ran
  std::string calibrated;              // yes, or whose figures were taken
  bool apart = false;
};

/// Simulated alone, all members entering at once, until the last has left. Graphs are shared through `graphs`.
PredictedCollective predict(const experiments::measured::Collective& row, experiments::GraphCache& graphs);

}  // namespace manyworlds::farm
