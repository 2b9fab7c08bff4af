#include "farm/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace manyworlds::farm {
namespace {

using core::sharing::Key;
using core::step::Configuration;
using core::step::Layout;
using core::step::Use;
using core::step::World;

/// What a world runs, whatever fabric carries it: worlds that differ in fabric or transport alone have it in common.
struct Outline {
  struct Operation {
    std::uint32_t group = 0;
    core::collective::Shape shape;
  };
  std::vector<Operation> uses;  // as World::uses(), which numbers them by group
  std::uint64_t instances = 0;
  double cost = 0;
};

/// Costs count events: what every rank runs, and transfers of collectives that are likely to meet others.
Outline outline_of(const World& world) {
  Outline outline;
  const auto& strategy = world.configuration().strategy;
  for (const auto& program : world.programs())
    outline.cost += static_cast<double>(program.ops.size()) * static_cast<double>(strategy.tp * strategy.dp);
  outline.instances = world.instances();
  for (std::uint32_t instance = 0; instance < world.instances(); ++instance) {
    const Use& use = world.use_of(instance);
    if (world.layout().groups()[use.group].role == core::workload::Role::data)
      outline.cost += static_cast<double>(use.dag->transfers.size());
  }
  for (const Use& use : world.uses()) outline.uses.push_back({use.group, use.shape});
  return outline;
}

/// Everything that an outline depends on.
Key outline_key(const Configuration& of) {
  core::sharing::Writer writer("outline");
  core::step::write_options(writer, core::workload::model_options().read(of.model));
  core::step::write_options(writer, core::workload::strategy_options().read(of.strategy));
  core::step::write_options(writer, core::compute::gpu_options().read(of.gpu));
  writer.integer(of.strategy.dp).integer(of.gpus_per_node);
  writer.integer(static_cast<std::int64_t>(of.placement)).integer(static_cast<std::int64_t>(of.all_reduce));
  return writer.finish();
}

class Planner {
 public:
  Planner(bool share, experiments::GraphCache& graphs, core::step::Laboratory& laboratory)
      : share_(share), graphs_(graphs), laboratory_(laboratory) {}

  void add(const experiments::Experiment& experiment) {
    const Configuration configuration = configure(experiment, graphs_);
    PlannedExperiment planned;
    planned.memory = core::memory::peak(configuration.model, configuration.strategy);
    planned.memory_bytes = static_cast<std::int64_t>(configuration.gpu.memory_gib * static_cast<double>(1 << 30));
    if (planned.memory.total() <= planned.memory_bytes) planned.step = step_of(experiment.id, configuration);
    plan_.experiments.push_back(planned);
  }
  Plan finish() { return std::move(plan_); }

 private:
  std::uint32_t step_of(std::uint32_t experiment, const Configuration& configuration) {
    const Layout layout = laboratory_.layout(configuration);
    PlannedStep step;
    step.key = core::step::step_key(configuration, layout, laboratory_.dags());
    step.experiment = experiment;
    step.experiments = 1;
    const auto next = static_cast<std::uint32_t>(plan_.steps.size());
    if (share_) {
      const auto [known, is_new] = steps_.try_emplace(step.key, next);
      if (!is_new) {
        ++plan_.steps[known->second].experiments;
        return known->second;
      }
    }
    const auto [outline, is_new] = outlines_.try_emplace(outline_key(configuration));
    if (is_new) outline->second = outline_of(laboratory_.world(configuration));
    step.instances = outline->second.instances;
    step.cost = outline->second.cost;
    if (share_ && configuration.composition == core::step::Composition::composed)
      add_collectives(outline->second, layout, step);
    plan_.steps.push_back(std::move(step));
    return next;
  }

  void add_collectives(const Outline& outline, const Layout& layout, PlannedStep& step) {
    for (std::uint32_t number = 0; number < outline.uses.size(); ++number) {
      const auto& [group, shape] = outline.uses[number];
      const auto dag = laboratory_.dags().get(shape);
      const Key key =
          core::step::collective_key(shape, layout.connect(group, *dag), layout.graph(), layout.transport());
      const auto [known, is_new] = collectives_.try_emplace(key, static_cast<std::uint32_t>(plan_.collectives.size()));
      if (is_new)
        plan_.collectives.push_back({key, step.experiment, number, static_cast<double>(dag->transfers.size())});
      step.collectives.push_back(known->second);
    }
    std::sort(step.collectives.begin(), step.collectives.end());
    step.collectives.erase(std::unique(step.collectives.begin(), step.collectives.end()), step.collectives.end());
  }

  bool share_;
  experiments::GraphCache& graphs_;
  core::step::Laboratory& laboratory_;
  std::map<Key, std::uint32_t> steps_, collectives_;
  std::map<Key, Outline> outlines_;
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
