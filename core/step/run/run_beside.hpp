// The rest of a run of fluids on another thread, beside the run that it was cloned from. It has caches and results of
// its own, so that both share only what is constant.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/base/work_ahead.hpp"
#include "core/step/run/step.hpp"

namespace manyworlds::core::step {

class RunBeside final : public AheadTask {
 public:
  /// Clones `step`, which is at `fork`, on the caller's thread. No cable of `compiled` may fail. `packets` has the
  /// transport with which its efficiency is measured, `known` the results so far. The time reached is stored in
  /// `reached`, if that is given; both runs may do so at once.
  RunBeside(const CompiledStep& compiled, const Step& step, const FluidNetwork::Fork& fork, std::int64_t slowed_by_ppm,
            const network::ComponentCache& packets, const IsolatedResults& known, std::atomic<Time>* reached);

  /// Returns when no thread works on this any more and none will. It need not have been begun.
  void stop();
  /// Of a run that has come to its end, returns the step and its result.
  const Step& step() const { return step_; }
  const StepResult& result() const { return *result_; }

 private:
  void work(std::size_t thread) override;

  const CompiledStep& compiled_;
  network::ComponentCache packets_;
  TransportEfficiency efficiency_;
  IsolatedResults results_;
  std::atomic<Time> own_reached_ = 0;
  std::atomic<Time>* reached_;
  Step step_;
  std::atomic<bool> stops_ = false;
  std::optional<StepResult> result_;
};

}  // namespace manyworlds::core::step
