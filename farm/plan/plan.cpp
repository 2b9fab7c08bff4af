#include "farm/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/error.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/step/run/simulation_context.hpp"
#include "farm/plan/footprints.hpp"
#include "farm/plan/naming_experiment.hpp"
#include "farm/system/slices.hpp"

namespace manyworlds::farm {
namespace {

using core::sharing::Key;
using core::step::Configuration;
using core::step::StepSummary;

/// Examines all experiments, summarizes those that fit in an order of its own, and numbers the results in the order of
/// the experiments.
class Planner {
 public:
  Planner(const experiments::Sweep& sweep, bool share) : sweep_(sweep), share_(share) {}

  Plan make() {
    Footprints footprints;
    for (const auto& experiment : sweep_.experiments)
      naming_experiment(sweep_, experiment, [&] { examine(experiment, footprints); });
    // A SimulationContext caches the routes of only a few layouts, so layouts are processed one after the other,
    // whatever the order of the axes.
    std::vector<std::uint32_t> order(fitting_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return fitting_[a].layout < fitting_[b].layout; });
    std::vector<Summaries> summaries = summarize_all(order);
    for (std::size_t i = 0; i < order.size(); ++i) add_summary(summaries[i], fitting_[order[i]]);
    for (const FittingExperiment& one : fitting_) plan_.experiments[one.experiment].step = step_of(one);
    return std::move(plan_);
  }

 private:
  struct CollectiveRef {
    std::uint32_t collective = 0;  // index in found_
    core::step::GroupId group;     // that runs it
  };
  struct FittingExperiment {
    std::uint32_t experiment = 0;
    std::uint32_t layout = 0;
    Key step;
    std::vector<CollectiveRef> collectives;
    std::uint64_t instances = 0;
    double cost = 0;
    std::optional<Key> bound;
    core::Time floor_ps = 0;
  };
  /// What is known of an experiment that fits.
  struct Summaries {
    StepSummary step;
    std::optional<StepSummary> bound;
    core::Time floor_ps = 0;
  };
  struct FoundCollective {
    Key key;
    core::collective::Shape shape;
    double transfers = 0;
    std::uint32_t planned = UINT32_MAX;  // index in Plan::collectives
  };

  void examine(const experiments::Experiment& experiment, Footprints& footprints) {
    const Configuration configuration = configure(experiment, graphs_);
    PlannedExperiment planned;
    const core::step::MemoryRequirement demand = footprints.requirement_of(configuration);
    planned.memory = demand.required;
    planned.memory_bytes = demand.memory_bytes();
    plan_.experiments.push_back(planned);
    if (!planned.fits()) return;
    const auto next = static_cast<std::uint32_t>(layouts_.size());
    FittingExperiment& fitting = fitting_.emplace_back();
    fitting.experiment = experiment.id;
    fitting.layout =
        layouts_
            .try_emplace({configuration.graph.get(), core::network::path_choice_of(configuration.transport),
                          parallel_config_of(configuration)},
                         next)
            .first->second;
  }

  /// Returns the summaries of the experiments in `order`.
  std::vector<Summaries> summarize_all(const std::vector<std::uint32_t>& order) const {
    std::vector<Summaries> result(order.size());
    for_each_slice(order.size(), [&](std::size_t begin, std::size_t end) {
      experiments::GraphCache graphs;
      core::step::SimulationContext context(share_);
      for (std::size_t i = begin; i < end; ++i) {
        const auto& experiment = sweep_.experiments[fitting_[order[i]].experiment];
        naming_experiment(sweep_, experiment, [&] { result[i] = summaries(configure(experiment, graphs), context); });
      }
    });
    return result;
  }

  Summaries summaries(const Configuration& configuration, core::step::SimulationContext& context) const {
    Summaries result{summary(configuration, context), {}, 0};
    if (sweep_.best == 0 || configuration.transport.fidelity == core::network::Fidelity::analytic) return result;
    result.bound = context.summary(farm::bound_of(configuration));
    result.floor_ps = core::step::lower_bound_ps(configuration);
    return result;
  }

  StepSummary summary(const Configuration& configuration, core::step::SimulationContext& context) const {
    StepSummary result = context.summary(configuration);
    const bool composed = configuration.composition == core::step::Composition::composed;
    // An analytic collective costs less than sending its result, so its step computes it.
    const bool packets = configuration.transport.fidelity == core::network::Fidelity::packet;
    // Of a sweep that asks for its best, most steps are left out, and so are their collectives.
    if (!share_ || !composed || !packets || sweep_.best > 0) result.collectives.clear();
    return result;
  }

  void add_summary(const Summaries& summaries, FittingExperiment& to) {
    const StepSummary& summary = summaries.step;
    if (summaries.bound) to.bound = summaries.bound->step, to.floor_ps = summaries.floor_ps;
    to.step = summary.step;
    to.instances = summary.instances;
    to.cost = summary.cost;
    to.collectives.reserve(summary.collectives.size());
    for (const StepSummary::Collective& one : summary.collectives) {
      const auto [known, is_new] = numbers_.try_emplace(one.key, static_cast<std::uint32_t>(found_.size()));
      if (is_new) found_.push_back({one.key, one.shape, static_cast<double>(one.transfers)});
      to.collectives.push_back({known->second, one.group});
    }
  }

  std::uint32_t step_of(const FittingExperiment& one) {
    const auto next = static_cast<std::uint32_t>(plan_.steps.size());
    if (share_) {
      const auto [known, is_new] = steps_.try_emplace(one.step, next);
      if (!is_new) {
        ++plan_.steps[known->second].experiments;
        return known->second;
      }
    }
    PlannedStep step;
    step.key = one.step;
    step.experiment = one.experiment;
    step.experiments = 1;
    step.instances = one.instances;
    step.cost = one.cost;
    step.layout = one.layout;
    if (one.bound) step.bound = number_of_bound(one), step.floor_ps = one.floor_ps;
    step.collectives.reserve(one.collectives.size());
    for (const auto& [number, group] : one.collectives) {
      FoundCollective& found = found_[number];
      if (found.planned == UINT32_MAX) {
        found.planned = static_cast<std::uint32_t>(plan_.collectives.size());
        plan_.collectives.push_back({found.key, one.experiment, found.shape, group, found.transfers, one.layout});
      }
      step.collectives.push_back(found.planned);
    }
    std::sort(step.collectives.begin(), step.collectives.end());
    plan_.steps.push_back(std::move(step));
    return next;
  }

  std::uint32_t number_of_bound(const FittingExperiment& one) {
    const auto next = static_cast<std::uint32_t>(plan_.bounds.size());
    const auto [known, is_new] = bounds_.try_emplace(*one.bound, next);
    if (is_new) plan_.bounds.push_back({*one.bound, one.experiment, one.cost, one.layout});
    return known->second;
  }

  const experiments::Sweep& sweep_;
  bool share_;
  experiments::GraphCache graphs_;
  std::map<std::tuple<const core::network::Graph*, core::network::PathChoice, core::step::ParallelConfig>,
           std::uint32_t>
      layouts_;  // numbers what a SimulationContext has routes for, in order of appearance
  std::vector<FittingExperiment> fitting_;
  std::map<Key, std::uint32_t> numbers_;  // indices in found_
  std::vector<FoundCollective> found_;
  std::map<Key, std::uint32_t> steps_, bounds_;
  Plan plan_;
};

}  // namespace

Configuration bound_of(Configuration configuration) {
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  configuration.composition = core::step::Composition::composed;
  return configuration;
}

Plan make_plan(const experiments::Sweep& sweep, bool share) {
  return Planner(sweep, share).make();
}

std::vector<Task> tasks_of(const Plan& plan, bool share) {
  std::vector<Task> tasks;
  for (const PlannedCollective& collective : plan.collectives)
    tasks.push_back({collective.key, collective.cost, share, {}, collective.layout});
  for (const PlannedBound& bound : plan.bounds) tasks.push_back({bound.key, bound.cost, share, {}, bound.layout});
  for (const PlannedStep& step : plan.steps)
    tasks.push_back({step.key, step.cost, share, step.collectives, step.layout});
  return tasks;
}

}  // namespace manyworlds::farm
