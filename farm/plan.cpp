#include "farm/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace manyworlds::farm {
namespace {

using core::sharing::Key;
using core::step::Configuration;
class Planner {
 public:
  Planner(bool share, experiments::GraphCache& graphs, core::step::Laboratory& laboratory)
      : share_(share), graphs_(graphs), laboratory_(laboratory) {}

  void add(const experiments::Experiment& experiment) {
    const Configuration configuration = configure(experiment, graphs_);
    PlannedExperiment planned;
    planned.memory = core::memory::peak(configuration.model, configuration.strategy, configuration.gpu);
    planned.memory_bytes = static_cast<std::int64_t>(configuration.gpu.memory_gib * static_cast<double>(1 << 30));
    if (planned.fits()) planned.step = step_of(experiment.id, configuration);
    plan_.experiments.push_back(planned);
  }
  Plan finish() { return std::move(plan_); }

 private:
  std::uint32_t step_of(std::uint32_t experiment, const Configuration& configuration) {
    const core::step::Outline outline = laboratory_.outline(configuration);
    const auto next = static_cast<std::uint32_t>(plan_.steps.size());
    if (share_) {
      const auto [known, is_new] = steps_.try_emplace(outline.step, next);
      if (!is_new) {
        ++plan_.steps[known->second].experiments;
        return known->second;
      }
    }
    PlannedStep step;
    step.key = outline.step;
    step.experiment = experiment;
    step.experiments = 1;
    step.instances = outline.instances;
    step.cost = outline.cost;
    if (share_ && configuration.composition == core::step::Composition::composed) add_collectives(outline, step);
    plan_.steps.push_back(std::move(step));
    return next;
  }

  void add_collectives(const core::step::Outline& outline, PlannedStep& step) {
    for (const auto& [key, use, transfers] : outline.collectives) {
      const auto [known, is_new] = collectives_.try_emplace(key, static_cast<std::uint32_t>(plan_.collectives.size()));
      if (is_new) plan_.collectives.push_back({key, step.experiment, use, static_cast<double>(transfers)});
      step.collectives.push_back(known->second);
    }
    std::sort(step.collectives.begin(), step.collectives.end());
  }

  bool share_;
  experiments::GraphCache& graphs_;
  core::step::Laboratory& laboratory_;
  std::map<Key, std::uint32_t> steps_, collectives_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const experiments::Sweep& sweep, bool share, experiments::GraphCache& graphs,
               core::step::Laboratory& laboratory) {
  Planner planner(share, graphs, laboratory);
  for (const experiments::Experiment& experiment : sweep.experiments) {
    try {
      planner.add(experiment);
    } catch (const core::InputError& error) {
      if (sweep.experiments.size() == 1) throw;
      throw core::InputError(fmt::format("experiment {}: {}", experiment.id, error.what()));
    }
  }
  return planner.finish();
}

std::vector<Task> tasks_of(const Plan& plan, bool share) {
  std::vector<Task> tasks;
  for (const PlannedCollective& collective : plan.collectives)
    tasks.push_back({collective.key, collective.cost, share, {}});
  for (const PlannedStep& step : plan.steps) tasks.push_back({step.key, step.cost, share, step.collectives});
  return tasks;
}

}  // namespace manyworlds::farm
