// A sweep as a job of the farm: its tasks are the collectives and the steps of its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/network/link_hops.hpp"
#include "core/step/isolated.hpp"
#include "core/step/laboratory.hpp"
#include "core/step/result.hpp"
#include "experiments/experiment.hpp"
#include "farm/job.hpp"
#include "farm/plan.hpp"
#include "farm/shard.hpp"

namespace manyworlds::farm {

/// What a task took; never part of the answer.
struct Effort {
  core::network::LinkHops link_hops;
  double cpu_s = 0;
};

/// Result of a collective task. That of a step task is encode(StepResult), which carries its own effort.
struct CollectiveResult {
  core::step::IsolatedResult result;
  Effort effort;
};
std::string encode(const CollectiveResult& result);
/// Throws InternalError on bytes that encode() did not make.
CollectiveResult decode_collective(const std::string& bytes);

/// How a job goes about its sweep.
struct JobTerms {
  bool share = true;  // its experiments share what they have in common
  Shard shard;        // the part of the sweep that it computes
};
/// The text of a job: the frozen sweep and the terms.
std::string frozen_job(const experiments::Sweep& sweep, const JobTerms& terms);
/// Throws InputError, also for the frozen sweep of another version.
JobTerms terms_of(const std::string& frozen);
/// The text of the same job for the whole sweep, and the shard that the text names. Parses nothing, for there may be a
/// thousand shards of a large sweep.
std::pair<std::string, Shard> whole_and_shard(const std::string& frozen);

class SweepJob : public Job {
 public:
  explicit SweepJob(const std::string& frozen) : SweepJob(frozen, terms_of(frozen)) {}

  const std::vector<Task>& tasks() const override { return tasks_; }
  std::string run(std::uint32_t number, std::span<const std::string> inputs) override;

  const experiments::Sweep& sweep() const { return sweep_; }
  const Plan& plan() const { return plan_; }

 private:
  SweepJob(const std::string& frozen, const JobTerms& terms);
  const core::step::World& world(std::uint32_t experiment);
  std::string run_collective(const PlannedCollective& collective);
  std::string run_step(const PlannedStep& step, std::span<const std::string> inputs);

  experiments::Sweep sweep_;
  experiments::GraphCache graphs_;
  core::step::Laboratory laboratory_;
  Plan plan_;
  std::vector<Task> tasks_;
  std::uint32_t experiment_of_world_ = 0;
  std::unique_ptr<core::step::World> world_;  // the last one: tasks of an experiment often follow one another
};

/// A JobFactory.
std::unique_ptr<Job> make_sweep_job(const std::string& frozen);

}  // namespace manyworlds::farm
