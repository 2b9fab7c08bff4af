// Runs the tasks of a sweep in a process that never sees the sweep: each task specification yields one compiled step.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/network/flows/component_answerer.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/plan/kept_components.hpp"
#include "farm/plan/sweep_task_spec.hpp"
#include "farm/protocol/job.hpp"
#include "farm/system/thread_pool.hpp"

namespace manyworlds::farm {

class SweepRunner : public Runner {
 public:
  /// Reads the text that SweepJob::common_spec() made. Throws InputError and InternalError on anything else, and
  /// IoError if its threads cannot be started.
  explicit SweepRunner(const std::string& common, const RunnerOptions& options = {});
  /// Returns an encoded CollectiveResult for a collective, an encoded StepResult for a step.
  std::string run(const std::string& spec, std::span<const std::string> inputs) override;

  /// Simulates a component of flows for a step that another process runs.
  std::string answer(const std::string& question) override { return answerer_.answer(question); }
  std::uint64_t answers_used() const override { return pool_ ? pool_->answers_used() : 0; }

  /// Makes later steps fill `recording` for the ranks that it names; null stops that.
  void record_steps(core::step::Recording* recording) { recording_ = recording; }
  /// Makes later steps report the simulated time that they have reached; null stops that.
  void report_reached_to(std::atomic<core::Time>* reached) { reached_ = reached; }
  /// Returns the compiled step of the last task.
  const core::step::CompiledStep& last_compiled() const { return *compiled_; }

 private:
  SweepRunner(const SweepSharedSettings& common, const RunnerOptions& options);
  core::step::Configuration configure(const std::string& settings);
  core::step::Ranks ranks_of(const core::step::Configuration& configuration) const;
  const core::step::CompiledStep& compile(const core::step::Configuration& configuration, const std::string& settings);
  std::string run_collective(const SweepTaskSpec& spec);
  std::string run_bound(const SweepTaskSpec& spec);
  std::string run_step(const SweepTaskSpec& spec, std::span<const std::string> inputs);

  bool share_;
  experiments::CommonSettings common_;
  experiments::GraphCache graphs_;
  std::unique_ptr<ThreadPool> pool_;      // null: one thread, and nobody to ask
  std::unique_ptr<KeptComponents> kept_;  // null: nothing is kept for others
  core::step::SimulationContext context_;
  core::network::ComponentAnswerer answerer_;
  std::string settings_;  // settings of the cached compiled step
  std::unique_ptr<core::step::CompiledStep>
      compiled_;                          // a cache of one: tasks of one experiment often follow one another
  core::step::IsolatedResults analytic_;  // not tasks of their own: computing them costs less than sending them
  core::step::Recording* recording_ = nullptr;
  std::atomic<core::Time>* reached_ = nullptr;
};

}  // namespace manyworlds::farm
