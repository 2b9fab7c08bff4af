#include "farm/sweep/single_run.hpp"

#include "farm/plan/sweep_job.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/worker/simulating_worker.hpp"

namespace manyworlds::farm {

SingleRun::SingleRun(const experiments::Sweep& sweep, const std::vector<std::uint32_t>& ranks, RunProgress* progress,
                     std::size_t threads) {
  const SweepJob job(serialize_job(sweep, {}));
  runner_ = std::make_unique<SweepRunner>(job.common_spec(), RunnerOptions{threads});
  for (const std::uint32_t rank : ranks) recording_.ranks.push_back({core::step::RankId(rank)});
  if (!ranks.empty()) runner_->record_steps(&recording_);
  if (progress != nullptr) {
    progress->tasks = job.tasks().size();
    runner_->report_reached_to(&progress->reached);
  }
  std::vector<Outcome> outcomes;
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task) {
    std::vector<std::string> inputs;
    for (const std::uint32_t input : job.tasks()[task].inputs) inputs.push_back(outcomes[input].bytes);
    const bool stopped = progress != nullptr && progress->stop;
    outcomes.push_back(stopped ? Outcome{Status::error, core::step::StepStopped().what(), 0}
                               : run_guarded(*runner_, job.spec(task), inputs));
    if (progress != nullptr) progress->done = task + 1;
    if (!outcomes.back().ok()) {
      outcomes.resize(job.tasks().size(), outcomes.back());  // no later task can be computed
      break;
    }
  }
  runner_->report_reached_to(nullptr);
  results_ = make_results(sweep, job.plan(), [&](std::uint32_t task) -> const Outcome& { return outcomes.at(task); });
}

}  // namespace manyworlds::farm
