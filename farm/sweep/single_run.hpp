// One experiment, run in this process: what `manyworlds run` answers from.
#pragma once

#include <atomic>
#include <memory>

#include "core/step/run/recording.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// How far a run is, for another thread that shows it.
struct RunProgress {
  std::atomic<std::size_t> tasks = 0, done = 0;  // simulations; the last one is that of the step
  std::atomic<core::Time> reached = 0;           // of the step
};

class SingleRun {
 public:
  /// Runs the one experiment of `sweep`. With ranks, records what these do; ascending, each a rank of the experiment.
  explicit SingleRun(const experiments::Sweep& sweep, const std::vector<std::uint32_t>& ranks = {},
                     RunProgress* progress = nullptr);

  const io::Results& results() const { return results_; }
  /// Whether the step ran to its end and was recorded; only then is there a world.
  bool recorded() const { return recording_.end > 0; }
  const core::step::Recording& recording() const { return recording_; }
  const core::step::World& world() const { return runner_->last_world(); }

 private:
  core::step::Recording recording_;
  std::unique_ptr<SweepRunner> runner_;
  io::Results results_;
};

}  // namespace manyworlds::farm
