// Runs the tasks of a sweep in a process that never sees the sweep: a world at a time, from its order.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/step/run/laboratory.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/plan/sweep_order.hpp"
#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

class SweepRunner : public Runner {
 public:
  /// `common` as SweepJob::common() made it. Throws InputError and InternalError on anything else.
  explicit SweepRunner(const std::string& common);
  /// Of a collective, an encoded CollectiveResult; of a step, an encoded StepResult.
  std::string run(const std::string& order, std::span<const std::string> inputs) override;

  /// Steps from now on fill `recording`, for the ranks that it names; null: none does.
  void record_steps(core::step::Recording* recording) { recording_ = recording; }
  /// Steps from now on say how far they are; null: none does.
  void tell_reached(std::atomic<core::Time>* reached) { reached_ = reached; }
  /// Of the last task that ran.
  const core::step::World& last_world() const { return *world_; }

 private:
  explicit SweepRunner(const SweepCommon& common);
  const core::step::World& world(const std::string& settings);
  std::string run_collective(const SweepOrder& order);
  std::string run_step(const SweepOrder& order, std::span<const std::string> inputs);

  bool share_;
  experiments::Common common_;
  experiments::GraphCache graphs_;
  core::step::Laboratory laboratory_;
  std::string settings_;                      // of world_
  std::unique_ptr<core::step::World> world_;  // the last one: tasks of an experiment often follow one another
  core::step::IsolatedResults analytic_;      // no task computes them: they take less than their way here
  core::step::Recording* recording_ = nullptr;
  std::atomic<core::Time>* reached_ = nullptr;
};

}  // namespace manyworlds::farm
