// The keys of results that a plan does not have yet: of the steps and bounds of a sweep that asks for its best, which
// are compiled when they are to be computed.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/sharing/key.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

/// Computes each key once. Not thread-safe. Both throw InputError, naming the experiment, for one that cannot be
/// simulated at all.
class ResultKeys {
 public:
  core::sharing::Key of_step(const experiments::Sweep& sweep, std::uint32_t experiment) {
    return of(sweep, experiment, false);
  }
  core::sharing::Key of_bound(const experiments::Sweep& sweep, std::uint32_t experiment) {
    return of(sweep, experiment, true);
  }

 private:
  core::sharing::Key of(const experiments::Sweep& sweep, std::uint32_t experiment, bool is_bound);

  experiments::GraphCache graphs_;
  core::step::SimulationContext context_;
  std::map<std::pair<std::uint32_t, bool>, core::sharing::Key> known_;
};

}  // namespace manyworlds::farm
