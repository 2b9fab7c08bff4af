// A sweep as a job of the farm: its tasks are the collectives and the steps of its plan, which
// farm/plan/sweep_runner.hpp runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/frozen_job.hpp"
#include "farm/plan/plan.hpp"
#include "farm/plan/shard.hpp"
#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

class SweepJob : public Job {
 public:
  /// `frozen` as frozen_job() made it. Throws InputError on anything else.
  explicit SweepJob(const std::string& frozen) : SweepJob(open_job(frozen)) {}

  const std::vector<Task>& tasks() const override { return tasks_; }
  std::string common() const override;
  std::string order(std::uint32_t task) const override;
  bool holds_result(std::uint32_t task, std::string_view bytes) const override;

  const experiments::Sweep& sweep() const { return sweep_; }
  const Plan& plan() const { return plan_; }

 private:
  explicit SweepJob(const FrozenJob& job);
  bool holds_step(const PlannedStep& step, std::string_view bytes) const;

  bool share_;
  experiments::Sweep sweep_;
  experiments::Common common_;
  Plan plan_;
  std::vector<Task> tasks_;
};

JobKind sweep_jobs();

}  // namespace manyworlds::farm
