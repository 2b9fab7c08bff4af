// One iteration of reinforcement learning, of the results of its experiments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/phases/expanded_phases.hpp"
#include "farm/phases/composition.hpp"
#include "farm/phases/rollout_time.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::phases {

/// By how much interpolated decoding steps are off, at steps between the simulated ones.
struct InterpolationError {
  double worst = 0;     // greatest magnitude, as a share of the step
  double weighted = 0;  // magnitudes, weighted by the decoding time around them
  std::size_t steps = 0;
};

/// Bytes on the rank that needs most.
struct PhaseMemory {
  double peak = 0;      // of the phase alone
  double others = 0;    // that other phases of its pool leave resident
  double resident = 0;  // that it leaves resident itself
  double gpu = 0;       // that there are
  bool fits() const { return peak + others <= gpu; }
  double total() const { return peak + others; }
};

struct PhaseResult {
  std::string problem;  // why there is no time; empty: there is
  double step_s = 0;    // of training and scoring: one step; of a transfer: one bucket
  double host_s = 0;    // weights and states that go to the host and back
  double time_s = 0;    // of the phase
  double host_bytes = 0;
  double tokens = 0;   // trained, scored or generated
  double begin_s = 0;  // of a synchronous iteration
  double share = 0;    // of the iteration
  PhaseMemory memory;
  std::optional<RolloutTime> rollout;
  std::optional<InterpolationError> error;

  double tokens_per_s_per_gpu(std::int64_t gpus) const {
    return time_s > 0 ? tokens / time_s / static_cast<double>(gpus) : 0;
  }
};

struct Iteration {
  std::vector<PhaseResult> phases;  // as PhasesFile::phases
  Composition composition;
  std::int64_t gpus = 0;
  double samples = 0, tokens = 0;  // of the rollouts, prompts included; without one, those that are trained

  /// Returns the first phase without a time; nullptr if all have one.
  const PhaseResult* problem() const;
  double samples_per_s() const { return samples / composition.iteration_s; }
  double tokens_per_s() const { return tokens / composition.iteration_s; }
};

/// `results` are those of the sweep's run.
Iteration iteration_of(const experiments::phases::ExpandedPhases& expanded, const io::Results& results);

}  // namespace manyworlds::farm::phases
