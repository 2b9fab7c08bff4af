#include "farm/plan/sweep_job.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/plan/sweep_task_spec.hpp"

namespace manyworlds::farm {

namespace {

/// Counts are multiplied and added in 64 bits: valid ones come nowhere near this limit.
bool countable(std::int64_t count) {
  return count >= 0 && count <= std::int64_t{1} << 53;
}

/// Steps look up the exit time of every member and add times to it.
bool holds_collective(const PlannedCollective& collective, std::string_view bytes) {
  const auto result = decode_collective(bytes).result;
  return result.exits.size() == collective.shape.members &&
         std::all_of(result.exits.begin(), result.exits.end(), countable);
}

}  // namespace

SweepJob::SweepJob(const SerializedJob& job)
    : share_(job.options.share),
      sweep_(experiments::deserialize(job.sweep)),
      common_(experiments::common_settings_of(sweep_)),
      plan_(plan_of_shard(make_plan(sweep_, share_), job.options.shard)),
      tasks_(tasks_of(plan_, share_)) {}

std::string SweepJob::common_spec() const {
  return encode(SweepSharedSettings{share_, experiments::serialize(common_)});
}

std::string SweepJob::spec(std::uint32_t task) const {
  MANYWORLDS_CHECK(task < tasks_.size(), "task {} of {}", task, tasks_.size());
  SweepTaskSpec task_spec;
  const auto settings = [&](std::uint32_t experiment) {
    return experiments::serialize_own_settings(sweep_.experiments.at(experiment), common_);
  };
  if (plan_.is_step(task)) {
    task_spec.kind = SweepTaskSpec::Kind::step;
    task_spec.settings = settings(plan_.steps[task - plan_.task_of_step(0)].experiment);
    for (const std::uint32_t input : tasks_[task].inputs) task_spec.inputs.push_back(tasks_[input].key);
  } else if (plan_.is_bound(task)) {
    task_spec.kind = SweepTaskSpec::Kind::bound;
    task_spec.settings = settings(plan_.experiment_of(task));
  } else {
    const PlannedCollective& collective = plan_.collectives[task];
    task_spec.kind = SweepTaskSpec::Kind::collective;
    task_spec.settings = settings(collective.experiment);
    task_spec.key = collective.key;
    task_spec.shape = collective.shape;
    task_spec.group = collective.group;
  }
  return encode(task_spec);
}

core::sharing::Key SweepJob::result_key(std::uint32_t task) const {
  if (plan_.is_bound(task)) return keys_.of_bound(sweep_, plan_.experiment_of(task));
  if (plan_.is_step(task) && plan_.steps[task - plan_.task_of_step(0)].bound != kNoBound)
    return keys_.of_step(sweep_, plan_.experiment_of(task));
  return tasks_.at(task).key;
}

bool SweepJob::is_valid_result(std::uint32_t task, std::string_view bytes) const {
  try {
    if (!plan_.is_step(task) && !plan_.is_bound(task)) return holds_collective(plan_.collectives.at(task), bytes);
    return holds_step(plan_.experiment_of(task), bytes);
  } catch (const core::InternalError&) {  // not the encoding of a result
    return false;
  }
}

bool SweepJob::holds_step(std::uint32_t experiment_id, std::string_view bytes) const {
  const auto result = core::step::decode_step(bytes);
  for (const auto* uses : {&result.kernels, &result.collectives, &result.episodes})
    for (const core::step::SubsimulationUse& used : *uses)
      if (!countable(used.times)) return false;
  if (!countable(result.link_hops) || !(result.too_large || result.step_ps > 0)) return false;
  if (result.by_kind.empty()) return true;
  const auto& experiment = sweep_.experiments.at(experiment_id);
  return result.by_kind.size() == experiment.config().machines.size();
}

JobKind sweep_jobs() {
  return {[](const std::string& serialized_job) { return std::make_unique<SweepJob>(serialized_job); },
          [](const std::string& common_spec, const RunnerOptions& options) {
            return std::make_unique<SweepRunner>(common_spec, options);
          }};
}

}  // namespace manyworlds::farm
