#include "farm/plan/sweep_job.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/plan/sweep_order.hpp"
#include "farm/plan/sweep_runner.hpp"

namespace manyworlds::farm {

namespace {

/// Counts are multiplied and added up in 64 bits: none of ours comes near this.
bool countable(std::int64_t count) {
  return count >= 0 && count <= std::int64_t{1} << 53;
}

/// Steps look up the exit of every member, and add times to it.
bool holds_collective(const PlannedCollective& collective, std::string_view bytes) {
  const auto result = decode_collective(bytes).result;
  return result.exits.size() == collective.members && std::all_of(result.exits.begin(), result.exits.end(), countable);
}

}  // namespace

SweepJob::SweepJob(const FrozenJob& job)
    : share_(job.terms.share),
      sweep_(experiments::thaw(job.sweep)),
      common_(experiments::common_of(sweep_)),
      plan_(part_of(make_plan(sweep_, share_), job.terms.shard)),
      tasks_(tasks_of(plan_, share_)) {}

std::string SweepJob::common() const {
  return encode(SweepCommon{share_, experiments::freeze(common_)});
}

std::string SweepJob::order(std::uint32_t task) const {
  MANYWORLDS_CHECK(task < tasks_.size(), "task {} of {}", task, tasks_.size());
  SweepOrder made;
  const auto settings = [&](std::uint32_t experiment) {
    return experiments::freeze_own(sweep_.experiments.at(experiment), common_);
  };
  if (plan_.is_step(task)) {
    made.kind = SweepOrder::Kind::step;
    made.settings = settings(plan_.steps[task - plan_.task_of_step(0)].experiment);
    for (const std::uint32_t input : tasks_[task].inputs) made.inputs.push_back(tasks_[input].key);
  } else {
    const PlannedCollective& collective = plan_.collectives[task];
    made.kind = SweepOrder::Kind::collective;
    made.settings = settings(collective.experiment);
    made.key = collective.key;
    made.use = collective.use;
  }
  return encode(made);
}

bool SweepJob::holds_result(std::uint32_t task, std::string_view bytes) const {
  try {
    return plan_.is_step(task) ? holds_step(plan_.steps.at(task - plan_.task_of_step(0)), bytes)
                               : holds_collective(plan_.collectives.at(task), bytes);
  } catch (const core::InternalError&) {  // bytes that are none of ours
    return false;
  }
}

bool SweepJob::holds_step(const PlannedStep& step, std::string_view bytes) const {
  const auto result = core::step::decode_step(bytes);
  for (const auto* uses : {&result.kernels, &result.collectives, &result.episodes})
    for (const core::step::Used& used : *uses)
      if (!countable(used.times)) return false;
  if (!countable(result.link_hops) || !(result.too_large || result.step_ps > 0)) return false;
  if (result.by_kind.empty()) return true;
  const auto& experiment = sweep_.experiments.at(step.experiment);
  return result.by_kind.size() == experiments::world_of(experiment.settings, experiment.inputs).machines.size();
}

JobKind sweep_jobs() {
  return {[](const std::string& frozen) { return std::make_unique<SweepJob>(frozen); },
          [](const std::string& common) { return std::make_unique<SweepRunner>(common); }};
}

}  // namespace manyworlds::farm
