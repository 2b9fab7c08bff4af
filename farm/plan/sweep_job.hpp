// A sweep as a job of the farm: its tasks are the collectives and the steps of its plan. farm/plan/sweep_runner.hpp
// runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/plan.hpp"
#include "farm/plan/result_keys.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/plan/shard.hpp"
#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

class SweepJob : public Job {
 public:
  /// Reads the text that serialize_job() made. Throws InputError on anything else.
  explicit SweepJob(const std::string& serialized_job) : SweepJob(parse_job(serialized_job)) {}

  const std::vector<Task>& tasks() const override { return tasks_; }
  std::string common_spec() const override;
  std::string spec(std::uint32_t task) const override;
  core::sharing::Key result_key(std::uint32_t task) const override;
  bool is_valid_result(std::uint32_t task, std::string_view bytes) const override;

  const experiments::Sweep& sweep() const { return sweep_; }
  const Plan& plan() const { return plan_; }

 private:
  explicit SweepJob(const SerializedJob& job);
  bool holds_step(std::uint32_t experiment, std::string_view bytes) const;

  bool share_;
  experiments::Sweep sweep_;
  experiments::CommonSettings common_;
  Plan plan_;
  std::vector<Task> tasks_;
  mutable ResultKeys keys_;
};

JobKind sweep_jobs();

}  // namespace manyworlds::farm
