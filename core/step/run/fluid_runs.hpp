// Runs of one step as fluids, with transports and slowdowns that may differ. All that a run reads of its transport are
// answers to some questions (core/step/fluid/transport_efficiency.hpp). So two runs whose answers are equal are one; if
// some are not, the runs are one until the first of them is used; and a run whose contended collectives are slowed is
// one with that which slows none, until the first is contended. States at such forks are kept, and later runs go on
// from them: the same runs, to the last bit, as from the beginning.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/step/run/step.hpp"

namespace manyworlds::core::step {

class FluidRuns {
 public:
  /// `compiled` and `results` must outlive this. States are kept as long as they take `max_bytes` at most.
  FluidRuns(const CompiledStep& compiled, const IsolatedResults& results, std::int64_t max_bytes)
      : compiled_(compiled), results_(results), max_bytes_(max_bytes) {}

  struct Run {
    std::int64_t slowed_by_ppm = 0;
    std::vector<AskedEfficiencies::Answer> answers;
    std::vector<ContendedCollective> contended;
    StepResult result;  // without its error
  };
  /// What a run needs of its transport, and of whoever runs it.
  struct Needs {
    EpisodeCache& episodes;
    TransportEfficiency& efficiency;
    std::function<void(const MissingResults&)> add_missing;  // adds to `results`
    std::atomic<Time>* reached = nullptr;                    // see Step
  };
  /// Returns the run whose contended collectives take longer by a share, in millionths. References are valid until the
  /// next call.
  const Run& run(std::int64_t slowed_by_ppm, const Needs& needs);
  /// Returns about how much memory the step and all that is kept of its runs take.
  std::int64_t bytes() const;

 private:
  struct Branch {
    std::int64_t slowed_by_ppm = 0;
    FluidNetwork::Fork fork;
    std::vector<AskedEfficiencies::Answer> answers;  // before the fork
    std::unique_ptr<Step> step;
  };
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
