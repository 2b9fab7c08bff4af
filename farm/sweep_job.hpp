// A sweep as a job of the farm: its tasks are the collectives and the steps of its plan, which farm/sweep_runner.hpp
// runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/experiment.hpp"
#include "farm/job.hpp"
#include "farm/plan.hpp"
#include "farm/shard.hpp"

namespace manyworlds::farm {

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
  std::string common() const override;
  std::string order(std::uint32_t task) const override;

  const experiments::Sweep& sweep() const { return sweep_; }
  const Plan& plan() const { return plan_; }

 private:
  SweepJob(const std::string& frozen, const JobTerms& terms);

  bool share_;
  experiments::Sweep sweep_;
  experiments::Common common_;
  Plan plan_;
  std::vector<Task> tasks_;
};

JobKind sweep_jobs();

}  // namespace manyworlds::farm
