#include "farm/plan/task_description.hpp"

#include <algorithm>

#include "experiments/settings/settings.hpp"

namespace manyworlds::farm {

namespace {

/// Returns for each step whether the task is this step or one of its inputs.
std::vector<bool> steps_of(const Plan& plan, std::uint32_t task) {
  std::vector<bool> steps(plan.steps.size(), false);
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {
    const auto& inputs = plan.steps[step].collectives;
    steps[step] = plan.task_of_step(step) == task || std::binary_search(inputs.begin(), inputs.end(), task) ||
                  (plan.is_bound(task) && plan.steps[step].bound == task - plan.task_of_bound(0));
  }
  return steps;
}

}  // namespace

nlohmann::json describe_task(const SweepJob& job, std::uint32_t task) {
  const Plan& plan = job.plan();
  const auto steps = steps_of(plan, task);
  nlohmann::json experiments = nlohmann::json::array();
  std::size_t count = 0;
  for (std::uint32_t id = 0; id < plan.experiments.size(); ++id) {
    if (plan.experiments[id].step == kNoStep || !steps[plan.experiments[id].step]) continue;
    if (++count <= kDescribedExperiments) experiments.push_back(id);
  }
  const std::uint32_t first = plan.experiment_of(task);
  nlohmann::json configuration = nlohmann::json::object();
  for (const auto& [key, value] : job.sweep().experiments.at(first).settings)
    configuration[key] = experiments::to_json(value);
  return {{"experiments", experiments}, {"experiment_count", count}, {"configuration", configuration}};
}

}  // namespace manyworlds::farm
