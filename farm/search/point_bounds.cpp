#include "farm/search/point_bounds.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/plan/plan.hpp"
#include "farm/results/result_tables.hpp"

namespace manyworlds::farm {
namespace {

using core::step::Configuration;
using core::step::LeastMemory;
using core::step::StepResult;
using experiments::Experiment;
using experiments::OpenKeys;
using experiments::Space;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns the configurations, one of which needs the least memory of all points that differ from this one in open
/// keys: states that are sharded over all replicas, and all layers recomputed, without the buffers that either needs.
/// What is recomputed of the configuration is neutral.
std::vector<LeastMemory> least_memory_of(Configuration configuration, const OpenKeys& open) {
  core::workload::Strategy& strategy = configuration.strategy;
  LeastMemory least;
  if (open.zero_stage) {
    strategy.zero = strategy.replicas() > 1 ? 3 : 0;
    strategy.stack.reduce_in_16bit = false;
    least.uncounted.push_back(&core::memory::Footprint::gathered);
  }
  if (open.recompute_kind) {
    strategy.recompute = core::workload::Recompute::full, strategy.recompute_modules = 0;
    strategy.stage_recompute_layers.clear();
  }
  if (open.recompute_kind || open.recompute_layers) strategy.recompute_layers = 0;
  if (open.recompute_kind || open.recompute_stages) strategy.recompute_stages = 0;
  const bool recomputes_more =
      core::workload::recomputes(strategy) && (open.recompute_kind || open.recompute_layers || open.recompute_stages);
  if (recomputes_more) least.uncounted.push_back(&core::memory::Footprint::recomputed);
  if (open.zero_stage || recomputes_more) least.uncounted.push_back(&core::memory::Footprint::rounding);
  least.configuration = std::move(configuration);
  std::vector<LeastMemory> all{std::move(least)};
  if (open.zero_stage || !open.gradient_bits) return all;
  bool& in_16bit = all.emplace_back(all.front()).configuration.strategy.stack.reduce_in_16bit;
  in_16bit = !in_16bit;
  return all;
}

core::step::StageChoices choices_of(const OpenKeys& open) {
  return {open.stage_layers, open.stage_recompute};
}

core::step::Replicas replicas_of(const OpenKeys& open) {
  return open.replicas ? core::step::Replicas::open : core::step::Replicas::counted;
}

/// Whether layers of stages follow from keys that are open, so that those of a configuration say nothing of the
/// others'.
bool moves_layers(const Experiment& experiment, const OpenKeys& open) {
  const std::string split = experiment.settings.text("strategy.split");
  return (split == "by_time" || split == "by_memory") && (open.recompute || open.replicas || open.stage_recompute);
}

/// Below every step.
constexpr core::Time kNothingKnown = 1;

}  // namespace

PointBounds::PointBounds(const Space& space) : space_(space), viewer_(space) {
  rows_.name = space.sweep().name;
  rows_.objective = space.sweep().objective;
}

std::vector<PointBound> PointBounds::of(const std::vector<Space::Point>& points, std::size_t begin, std::size_t end) {
  std::vector<PointBound> result;
  std::vector<std::size_t> fitting;
  std::vector<StepResult> steps;
  rows_.experiments.clear();
  for (std::size_t i = begin; i < end; ++i) {
    PointBound& bound = result.emplace_back(PointBound{kInfinity, space_.points_of(points[i])});
    std::optional<Experiment> experiment = viewer_.experiment_of(points[i]);
    if (!experiment) continue;
    const Configuration configuration = viewer_.configuration_of(*experiment);
    const OpenKeys open = space_.open_keys_of(points[i]);
    if (open.stages()) bound.points *= count_of_choices(configuration, choices_of(open));
    if (open.stages() && moves_layers(*experiment, open))
      throw core::InputError(fmt::format("what stages recompute cannot be any under split {}, which follows from it",
                                         experiment->settings.text("strategy.split")),
                             space_.sweep().name);
    const std::optional<core::Time> step =
        moves_layers(*experiment, open) ? kNothingKnown : least_step(configuration, open);
    if (!step) continue;
    steps.emplace_back().step_ps = *step;
    add_row(std::move(*experiment));
    fitting.push_back(i - begin);
  }
  const std::vector<double> values = values_of(steps);
  for (std::size_t i = 0; i < fitting.size(); ++i) result[fitting[i]].objective = values[i];
  return result;
}

/// Returns the least time of all that a configuration stands for and that fits; nullopt if nothing does.
std::optional<core::Time> PointBounds::least_step(const Configuration& configuration, const OpenKeys& open) {
  std::optional<core::Time> least;
  for (const LeastMemory& memory : least_memory_of(configuration, open)) {
    if (open.stages()) {
      const std::string why = core::step::why_stages_are_fixed(configuration.model, configuration.strategy);
      if (!why.empty())
        throw core::InputError(fmt::format("stages of a pipeline cannot have any layers under schedule {}: {}",
                                           core::workload::schedule_type(configuration.strategy.schedule).name, why),
                               space_.sweep().name);
      const auto best = best_stages(configuration, memory, choices_of(open), lower_bounds_.links_of(configuration),
                                    replicas_of(open));
      if (best) least = std::min(least.value_or(best->bound_ps), best->bound_ps);
    } else if (memory.fits(memory_requirement_of(memory.configuration))) {
      return lower_bounds_.of(configuration, replicas_of(open));
    }
  }
  return least;
}

core::step::BestStages PointBounds::best_stages_of(const Space::Point& point) {
  const Configuration configuration = viewer_.configuration_of(viewer_.experiment_of(point).value());
  return best_stages(configuration, LeastMemory{configuration, {}}, choices_of(space_.open_keys_of(point)),
                     lower_bounds_.links_of(configuration))
      .value();
}

double PointBounds::analytic_value_of(const Space::Point& point) {
  Experiment experiment = viewer_.experiment_of(point).value();
  const StepResult step = analytic_step(viewer_.configuration_of(experiment), context_, known_);
  rows_.experiments.clear();
  add_row(std::move(experiment));
  return values_of({step}).front();
}

void PointBounds::add_row(Experiment experiment) {
  experiment.id = static_cast<std::uint32_t>(rows_.experiments.size());
  rows_.experiments.push_back(std::move(experiment));
}

std::vector<double> PointBounds::values_of(const std::vector<StepResult>& steps) const {
  Plan plan;
  std::vector<Outcome> outcomes;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < steps.size(); ++id) {
    ids.push_back(id);
    plan.experiments.emplace_back().step = id;
    plan.steps.emplace_back().experiment = id;
    outcomes.push_back({Status::ok, core::step::encode(steps[id]), 0});
  }
  if (ids.empty()) return {};
  const io::Results rows = make_rows(
      rows_, plan, [&](std::uint32_t task) -> const Outcome& { return outcomes[task]; }, uncertainty_, ids);
  return minimised_objective(rows, rows_.objective);
}

}  // namespace manyworlds::farm
