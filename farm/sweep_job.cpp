#include "farm/sweep_job.hpp"

#include "core/error.hpp"
#include "farm/sweep_order.hpp"
#include "farm/sweep_runner.hpp"

namespace manyworlds::farm {

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

JobKind sweep_jobs() {
  return {[](const std::string& frozen) { return std::make_unique<SweepJob>(frozen); },
          [](const std::string& common) { return std::make_unique<SweepRunner>(common); }};
}

}  // namespace manyworlds::farm
