// Runs of one step as fluids, with transports that may differ, each with the error that it says it has. All that a run
// reads of its transport are answers to some questions (core/step/fluid/transport_efficiency.hpp). So two runs whose
// answers are equal are one; if some are not, the runs are one until the first of them is used; and a run whose
// contended collectives are slowed is one with that which slows none, until the first is contended. States at such
// forks are kept, and later runs go on from them: the same runs, to the last bit, as from the beginning.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/work_ahead.hpp"
#include "core/step/fluid/fluid_error.hpp"
#include "core/step/run/step.hpp"

namespace manyworlds::core::step {

class FluidRuns {
 public:
  /// `compiled` and `results` must outlive this. States are kept as long as they take `max_bytes` at most.
  FluidRuns(const CompiledStep& compiled, const IsolatedResults& results, std::int64_t max_bytes)
      : compiled_(compiled), results_(results), max_bytes_(max_bytes) {}

  /// What a run needs of its transport, and of whoever runs it.
  struct Needs {
    const network::ComponentCache& packets;  // with which `efficiency` measures
    EpisodeCache& episodes;
    TransportEfficiency& efficiency;
    HelperThreads* helpers = nullptr;                        // null: there is no other thread
    std::function<void(const MissingResults&)> add_missing;  // adds to `results`
    std::function<FluidError(const std::vector<ContendedCollective>&)> measure;
    std::atomic<Time>* reached = nullptr;  // see Step
  };
  /// Runs the step, and once more with slower collectives if its error is above 0: beside the first, if a thread may
  /// help.
  StepResult run(const Needs& needs);

  /// What an error of contended collectives is worth in the step is found by a run in which each takes longer by this.
  static constexpr std::int64_t kSlowedByPpm = 100'000;
  /// Returns by which share the step is longer if every contended collective takes longer by `mean`, in proportion to
  /// what the step takes if they take longer by kSlowedByPpm.
  static double error_of_step(double mean, Time step_ps, Time slowed_step_ps) {
    const double longer = static_cast<double>(slowed_step_ps) / static_cast<double>(step_ps) - 1;
    return std::max(0.0, longer * mean / (static_cast<double>(kSlowedByPpm) * 1e-6));
  }
  /// Returns about how much memory the step and all that is kept of its runs take.
  std::int64_t bytes() const;

 private:
  struct Run {
    std::int64_t slowed_by_ppm = 0;
    std::vector<AskedEfficiencies::Answer> answers;
    std::vector<ContendedCollective> contended;
    StepResult result;  // without its error
  };
  struct Branch {
    std::int64_t slowed_by_ppm = 0;
    FluidNetwork::Fork fork;
    std::vector<AskedEfficiencies::Answer> answers;  // before the fork
    std::unique_ptr<Step> step;
  };
  class Beside;
  const Run& run(std::int64_t slowed_by_ppm, const Needs& needs, Beside& beside);
  const Run& keep_run(std::int64_t slowed_by_ppm, const Step& step, StepResult result);
  const Run* equal_run(std::int64_t slowed_by_ppm, TransportEfficiency& efficiency) const;
  const Branch* longest_branch(std::int64_t slowed_by_ppm, TransportEfficiency& efficiency) const;
  void keep_branch(const Step& step, const FluidNetwork::Fork& fork, std::int64_t slowed_by_ppm);

  const CompiledStep& compiled_;
  const IsolatedResults& results_;
  std::int64_t max_bytes_;
  std::vector<Run> runs_;
  std::vector<Branch> branches_;
};

}  // namespace manyworlds::core::step
