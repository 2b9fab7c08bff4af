// Step times by batch and layout, as the results of a sweep over strategy.global_batch predict them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::farm::ramp {

/// An experiment that may be a phase of a training.
struct Candidate {
  std::int64_t id = 0;
  std::int64_t batch = 0;  // samples a step
  double tokens = 0;       // a step
  double step_s = 0;
  std::uint32_t layout = 0;  // of SimulatedBatches::layouts

  /// Returns the seconds in which it comes a step of an infinite batch further where the critical batch is `critical`
  /// tokens: a line in that.
  double rate(double critical) const { return step_s * (1 + critical / tokens); }
};

struct SimulatedBatches {
  std::int64_t gpus = 0;
  double tokens_per_sample = 0;
  std::vector<std::string> layouts;   // the values of all axes but the batch, "tp=4 pp=2"; "" if there are none
  std::vector<Candidate> candidates;  // the fastest of each layout and batch, by layout, then by batch
};

/// Returns the experiments that ran and satisfy `where` (all if it is empty). `name` is the results' name in messages.
/// Throws core::InputError if none did, if a condition is wrong, if the batch is no axis of the sweep, and if these
/// experiments differ in their GPUs, cluster, topology, model or tokens per sample.
SimulatedBatches simulated_batches(const io::Results& results, const std::string& where, const std::string& name);

}  // namespace manyworlds::farm::ramp
