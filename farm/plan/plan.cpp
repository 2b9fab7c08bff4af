#include "farm/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <tuple>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/compute/gpu.hpp"
#include "core/step/run/laboratory.hpp"
#include "core/step/world/demand.hpp"
#include "farm/system/processors.hpp"

namespace manyworlds::farm {
namespace {

using core::memory::Footprint;
using core::sharing::Key;
using core::step::Configuration;
using core::step::Outline;

template <class T>
void append(std::string& to, const core::OptionTable<T>& table, const T& from) {
  for (const auto& row : table.rows())
    std::visit([&to](const auto& value) { to += fmt::format("{} ", value); }, row.get(from));
}

/// Footprints by all that decides on them, which experiments on other fabrics and transports have in common.
class Footprints {
 public:
  core::step::Demand of(const Configuration& configuration) {
    if (configuration.is_mixed()) return demand_of(configuration);
    const core::workload::Strategy& strategy = configuration.strategy;
    std::string key = fmt::format("{} ", strategy.dp);
    append(key, core::workload::model_options(), configuration.model);
    append(key, core::workload::strategy_options(), strategy);
    append(key, core::workload::stack_options(), strategy.stack);
    append(key, core::compute::gpu_options(), configuration.gpu);
    if (configuration.model.routing) key += configuration.model.routing->key.hex();
    if (strategy.written) key += core::workload::key_of(*strategy.written).hex();
    const auto [known, is_new] = known_.try_emplace(std::move(key));
    if (is_new) known->second = core::memory::peak(configuration.model, strategy, configuration.gpu);
    return {known->second, core::step::usable_memory_gib(configuration, configuration.gpu)};
  }

 private:
  std::unordered_map<std::string, Footprint> known_;
};

/// Looks at all experiments, outlines those that fit in an order of its own, and numbers what it found in theirs.
class Planner {
 public:
  Planner(const experiments::Sweep& sweep, bool share) : sweep_(sweep), share_(share) {}

  Plan make() {
    Footprints footprints;
    for (const auto& experiment : sweep_.experiments) naming(experiment, [&] { look_at(experiment, footprints); });
    // A laboratory keeps the routes of a few layouts only: one layout after the other, however the axes are ordered.
    std::vector<std::uint32_t> order(fitting_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return fitting_[a].layout < fitting_[b].layout; });
    std::vector<Outline> outlines = outlined(order);
    for (std::size_t i = 0; i < order.size(); ++i) take_in(outlines[i], fitting_[order[i]]);
    for (const Fitting& one : fitting_) plan_.experiments[one.experiment].step = step_of(one);
    return std::move(plan_);
  }

 private:
  struct Asked {
    std::uint32_t collective = 0;  // in found_
    std::uint32_t use = 0;
  };
  struct Fitting {
    std::uint32_t experiment = 0;
    std::uint32_t layout = 0;
    Key step;
    std::vector<Asked> collectives;
    std::uint64_t instances = 0;
    double cost = 0;
  };
  struct Found {
    Key key;
    double transfers = 0;
    std::uint32_t members = 0;
    std::uint32_t planned = UINT32_MAX;  // in Plan::collectives
  };

  template <class Work>
  void naming(const experiments::Experiment& experiment, const Work& work) const {
    try {
      work();
    } catch (const core::InputError& error) {
      if (sweep_.experiments.size() == 1) throw;
      throw core::InputError(fmt::format("experiment {}: {}", experiment.id, error.what()));
    }
  }

  void look_at(const experiments::Experiment& experiment, Footprints& footprints) {
    const Configuration of = configure(experiment, graphs_);
    PlannedExperiment planned;
    const core::step::Demand demand = footprints.of(of);
    planned.memory = demand.needs;
    planned.memory_bytes = demand.memory_bytes();
    plan_.experiments.push_back(planned);
    if (!planned.fits()) return;
    const auto next = static_cast<std::uint32_t>(layouts_.size());
    Fitting& fitting = fitting_.emplace_back();
    fitting.experiment = experiment.id;
    fitting.layout =
        layouts_.try_emplace({of.graph.get(), of.transport.routing, of.transport.seed, arrangement_of(of)}, next)
            .first->second;
  }

  /// Of the experiments in that order, by as many threads as there are CPUs at hand, each with a stretch of it and all
  /// that outlining needs of its own. Who fails first in the order decides, as if there were one.
  std::vector<Outline> outlined(const std::vector<std::uint32_t>& order) const {
    constexpr std::size_t kLeast = 64;  // experiments that are worth a thread
    constexpr std::size_t kMost = 16;   // threads: each has routes and programs of its own
    const std::size_t threads =
        std::clamp<std::size_t>(order.size() / kLeast, 1, std::min<std::size_t>(kMost, cpus_at_hand()));
    std::vector<Outline> made(order.size());
    std::vector<std::exception_ptr> failed(threads);
    const auto work = [&](std::size_t part) {
      try {
        experiments::GraphCache graphs;
        core::step::Laboratory laboratory(share_);
        for (std::size_t i = order.size() * part / threads; i < order.size() * (part + 1) / threads; ++i) {
          const auto& experiment = sweep_.experiments[fitting_[order[i]].experiment];
          naming(experiment, [&] { made[i] = outline(configure(experiment, graphs), laboratory); });
        }
      } catch (...) {
        failed[part] = std::current_exception();
      }
    };
    std::vector<std::thread> others;
    for (std::size_t part = 1; part < threads; ++part) others.emplace_back(work, part);
    work(0);
    for (std::thread& one : others) one.join();
    for (const std::exception_ptr& one : failed)
      if (one) std::rethrow_exception(one);
    return made;
  }

  Outline outline(const Configuration& configuration, core::step::Laboratory& laboratory) const {
    Outline made = laboratory.outline(configuration);
    const bool composed = configuration.composition == core::step::Composition::composed;
    // An analytic collective takes less than sending it does: its step computes it.
    const bool packets = configuration.transport.fidelity == core::network::Fidelity::packet;
    if (!share_ || !composed || !packets) made.collectives.clear();
    return made;
  }

  void take_in(const Outline& outline, Fitting& to) {
    to.step = outline.step;
    to.instances = outline.instances;
    to.cost = outline.cost;
    to.collectives.reserve(outline.collectives.size());
    for (const auto& [key, use, transfers, members] : outline.collectives) {
      const auto [known, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(found_.size()));
      if (is_new) found_.push_back({key, static_cast<double>(transfers), members});
      to.collectives.push_back({known->second, use});
    }
  }

  std::uint32_t step_of(const Fitting& one) {
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
    step.collectives.reserve(one.collectives.size());
    for (const auto& [number, use] : one.collectives) {
      Found& found = found_[number];
      if (found.planned == UINT32_MAX) {
        found.planned = static_cast<std::uint32_t>(plan_.collectives.size());
        plan_.collectives.push_back({found.key, one.experiment, use, found.transfers, one.layout, found.members});
      }
      step.collectives.push_back(found.planned);
    }
    std::sort(step.collectives.begin(), step.collectives.end());
    plan_.steps.push_back(std::move(step));
    return next;
  }

  const experiments::Sweep& sweep_;
  bool share_;
  experiments::GraphCache graphs_;
  std::map<std::tuple<const core::network::Graph*, core::network::Routing, std::int64_t, core::step::Arrangement>,
           std::uint32_t>
      layouts_;  // what a laboratory makes routes for; numbered as they come
  std::vector<Fitting> fitting_;
  std::map<Key, std::uint32_t> numbers_;  // in found_
  std::vector<Found> found_;
  std::map<Key, std::uint32_t> steps_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const experiments::Sweep& sweep, bool share) {
  return Planner(sweep, share).make();
}

std::vector<Task> tasks_of(const Plan& plan, bool share) {
  std::vector<Task> tasks;
  for (const PlannedCollective& collective : plan.collectives)
    tasks.push_back({collective.key, collective.cost, share, {}, collective.layout});
  for (const PlannedStep& step : plan.steps)
    tasks.push_back({step.key, step.cost, share, step.collectives, step.layout});
  return tasks;
}

}  // namespace manyworlds::farm
