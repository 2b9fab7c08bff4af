// Runs one experiment in this process, for `manyworlds run`.
#pragma once

#include <atomic>
#include <memory>

#include "core/step/run/recording.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The progress of a run, for another thread that displays it.
struct RunProgress {
  std::atomic<std::size_t> tasks = 0, done = 0;  // simulations; the last one is the step
  std::atomic<core::Time> reached = 0;           // simulated time in the step
  std::atomic<bool> stop = false;                // asks the run to end: its experiment has then failed

  /// Asks the run to end at its next simulation, or at the next time that its step reaches.
  void request_stop() {
    stop = true;
    reached = core::step::kStopStep;
  }
};

class SingleRun {
 public:
  /// Runs the one experiment of `sweep` on some threads and records `ranks`, which are ascending ranks of the
  /// experiment.
  explicit SingleRun(const experiments::Sweep& sweep, const std::vector<std::uint32_t>& ranks = {},
                     RunProgress* progress = nullptr, std::size_t threads = 1);

  const io::Results& results() const { return results_; }
  /// Returns whether the step ran to its end and was recorded; only then is there a compiled step.
  bool recorded() const { return recording_.end > 0; }
  const core::step::Recording& recording() const { return recording_; }
  const core::step::CompiledStep& compiled() const { return runner_->last_compiled(); }

 private:
  core::step::Recording recording_;
  std::unique_ptr<SweepRunner> runner_;
  io::Results results_;
};

}  // namespace manyworlds::farm
