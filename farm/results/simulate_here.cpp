#include "farm/results/simulate_here.hpp"

#include <optional>
#include <string>
#include <vector>

#include "farm/plan/sweep_job.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/worker/simulating_worker.hpp"

namespace manyworlds::farm {

io::Results simulate_here(const experiments::Sweep& sweep, const TaskProgress& on_progress) {
  const SweepJob job(serialize_job(sweep, {}));
  SweepRunner runner(job.common_spec());
  std::vector<Outcome> outcomes;
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task) {
    if (on_progress) on_progress(task, job.tasks().size());
    std::vector<std::string> inputs;
    std::optional<Outcome> failed;
    for (const std::uint32_t input : job.tasks()[task].inputs) {
      if (!outcomes[input].ok()) failed = outcomes[input];
      inputs.push_back(outcomes[input].bytes);
    }
    outcomes.push_back(failed ? *failed : run_guarded(runner, job.spec(task), inputs));
  }
  return make_results(sweep, job.plan(), [&](std::uint32_t task) -> const Outcome& { return outcomes.at(task); });
}

}  // namespace manyworlds::farm
