#include "farm/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

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
    std::vector<std::uint32_t> order, bounded;
    for (std::uint32_t i = 0; i < fitting_.size(); ++i) (fitting_[i].is_bounded ? bounded : order).push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return fitting_[a].layout < fitting_[b].layout; });
    std::vector<StepSummary> summaries = summarize_all(order);
    for (std::size_t i = 0; i < order.size(); ++i) add_summary(summaries[i], fitting_[order[i]]);
    sum_up(bounded);
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
    bool is_bounded = false;  // known by its sums alone
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
    fitting.is_bounded = sweep_.best > 0 && configuration.transport.fidelity != core::network::Fidelity::analytic;
    if (fitting.is_bounded) fitting.cost = expected_cost(configuration);
  }

  /// Returns the passes of all ranks through a layer, to which the ops of their programs are about proportional.
  static double expected_cost(const Configuration& configuration) {
    const core::workload::Strategy& s = configuration.strategy;
    const auto chunks = static_cast<double>(s.virtual_stages * s.chunk_micro_batches());
    const double layers =
        static_cast<double>(configuration.model.layers) / static_cast<double>(s.pp * s.virtual_stages);
    return layers * chunks * static_cast<double>(s.tp * s.cp * s.pp * s.dp);
  }

  /// Computes the sums over a micro-batch of the experiments in `bounded`.
  void sum_up(const std::vector<std::uint32_t>& bounded) {
    for_each_slice(bounded.size(), [&](std::size_t begin, std::size_t end) {
      experiments::GraphCache graphs;
      experiments::ConfigReader reader;
      core::step::LowerBounds bounds;
      for (std::size_t i = begin; i < end; ++i) {
        FittingExperiment& one = fitting_[bounded[i]];
        const auto& experiment = sweep_.experiments[one.experiment];
        naming_experiment(sweep_, experiment, [&] { one.floor_ps = bounds.of(configure(experiment, graphs, reader)); });
      }
    });
  }

  /// Returns the summaries of the experiments in `order`.
  std::vector<StepSummary> summarize_all(const std::vector<std::uint32_t>& order) const {
    std::vector<StepSummary> result(order.size());
    for_each_slice(order.size(), [&](std::size_t begin, std::size_t end) {
      experiments::GraphCache graphs;
      core::step::SimulationContext context(share_);
      for (std::size_t i = begin; i < end; ++i) {
        const auto& experiment = sweep_.experiments[fitting_[order[i]].experiment];
        naming_experiment(sweep_, experiment, [&] { result[i] = summary(configure(experiment, graphs), context); });
      }
    });
    return result;
  }

  StepSummary summary(const Configuration& configuration, core::step::SimulationContext& context) const {
    StepSummary result = context.summary(configuration);
    const bool composed = configuration.composition == core::step::Composition::composed;
    // An analytic collective costs less than sending its result, so its step computes it.
    const bool packets = configuration.transport.fidelity == core::network::Fidelity::packet;
    if (!share_ || !composed || !packets) result.collectives.clear();
    return result;
  }

  void add_summary(const StepSummary& summary, FittingExperiment& to) {
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
    if (one.is_bounded) {
      add_bounded_step(one);
      return next;
    }
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

  void add_bounded_step(const FittingExperiment& one) {
    const auto key = [&](const char* kind) { return core::sharing::KeyWriter(kind).integer(one.experiment).finish(); };
    PlannedStep step;
    step.key = key("step of experiment");
    step.experiment = one.experiment;
    step.experiments = 1;
    step.cost = one.cost;
    step.layout = one.layout;
    step.bound = static_cast<std::uint32_t>(plan_.bounds.size());
    step.floor_ps = one.floor_ps;
    plan_.steps.push_back(std::move(step));
    plan_.bounds.push_back({key("bound of experiment"), one.experiment, one.cost, one.layout});
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
  std::map<Key, std::uint32_t> steps_;
  Plan plan_;
};

}  // namespace

Configuration bound_of(Configuration configuration) {
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  configuration.composition = core::step::Composition::composed;
  return configuration;
}

core::step::StepResult analytic_step(const Configuration& configuration, core::step::SimulationContext& context,
                                     core::step::IsolatedResults& known) {
  const Configuration bound = bound_of(configuration);
  const auto ranks =
      core::step::can_deduplicate_ranks(bound) ? core::step::Ranks::representatives : core::step::Ranks::all;
  return context.run(context.compile(bound, ranks), known);
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
