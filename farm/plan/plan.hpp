// From a sweep to its tasks: one step for each distinct compiled step that fits into memory, and one collective for
// each distinct collective that those steps may ask for. A task refers to experiments by number, so a plan is small,
// and every process that makes it from the same sweep makes the same plan.
//
// Of a sweep that asks for its best alone, most steps are left out, and compiling them would take most of the time. So
// each experiment has a step and a bound of its own, known by its sums over a micro-batch (core/step/estimate), and
// which of them are the same shows when they are to be computed (farm/plan/result_keys.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/dag/dag.hpp"
#include "core/memory/footprint.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout/configuration.hpp"
#include "core/step/layout/ids.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

inline constexpr std::uint32_t kNoStep = UINT32_MAX;
inline constexpr std::uint32_t kNoBound = UINT32_MAX;

struct PlannedExperiment {
  core::memory::Footprint memory;  // of the rank that needs most; on mixed machines: of the rank with the least left
  std::int64_t memory_bytes = 0;   // of that rank's GPU
  std::uint32_t step = kNoStep;    // index in Plan::steps; kNoStep: does not fit, or is in another shard
  bool in_other_shard = false;     // belongs to another shard
  bool fits() const { return memory.total() <= memory_bytes; }
};

/// A collective that all members enter at once, without contention from others; `group` is the one that runs it in the
/// RankLayout of that experiment.
struct PlannedCollective {
  core::sharing::Key key;
  std::uint32_t experiment = 0;
  core::collective::Shape shape;
  core::step::GroupId group;
  double cost = 0;
  std::uint32_t layout = 0;  // of the experiment; equal for equal fabric, routes and rank placement
};

struct PlannedStep {
  core::sharing::Key key;                  // of one with a bound: of its experiment, known before it is compiled
  std::uint32_t experiment = 0;            // the first with this step
  std::uint32_t experiments = 0;           // number of experiments with this step
  std::vector<std::uint32_t> collectives;  // those it may ask for, ascending
  std::uint64_t instances = 0;             // number of collectives that one step runs; 0 of one with a bound
  double cost = 0;
  std::uint32_t layout = 0;        // as in PlannedCollective
  std::uint32_t bound = kNoBound;  // index in Plan::bounds
  core::Time floor_ps = 0;         // if it has a bound: a lower bound of that (core/step/estimate)
};

/// The analytic step of an experiment, a lower bound of its own.
struct PlannedBound {
  core::sharing::Key key;
  std::uint32_t experiment = 0;
  double cost = 0;
  std::uint32_t layout = 0;  // as in PlannedCollective
};

struct Plan {
  std::vector<PlannedExperiment> experiments;
  std::vector<PlannedCollective> collectives;
  std::vector<PlannedBound> bounds;  // of a sweep that asks for its best alone; then steps compute their collectives
  std::vector<PlannedStep> steps;

  /// Tasks are numbered: first the collectives, then the bounds, then the steps.
  std::uint32_t task_of_bound(std::uint32_t bound) const {
    return static_cast<std::uint32_t>(collectives.size()) + bound;
  }
  std::uint32_t task_of_step(std::uint32_t step) const {
    return task_of_bound(static_cast<std::uint32_t>(bounds.size())) + step;
  }
  bool is_step(std::uint32_t task) const { return task >= task_of_step(0); }
  bool is_bound(std::uint32_t task) const { return task >= task_of_bound(0) && !is_step(task); }
  /// Returns an experiment that needs the task.
  std::uint32_t experiment_of(std::uint32_t task) const {
    if (is_step(task)) return steps[task - task_of_step(0)].experiment;
    return is_bound(task) ? bounds[task - task_of_bound(0)].experiment : collectives[task].experiment;
  }
  const char* kind_of(std::uint32_t task) const {
    return is_step(task) ? "steps" : is_bound(task) ? "bounds" : "collectives";
  }
};

/// Returns the analytic configuration whose step bounds that of another one.
core::step::Configuration bound_of(core::step::Configuration configuration);
/// Returns that step. Missing results of its collectives are computed and added to `known`.
core::step::StepResult analytic_step(const core::step::Configuration& configuration,
                                     core::step::SimulationContext& context, core::step::IsolatedResults& known);

/// Without `share`, every experiment is a step of its own without inputs. Throws InputError, naming the experiment, for
/// one that cannot be simulated at all (a transport that would have to drop packets).
Plan make_plan(const experiments::Sweep& sweep, bool share = true);

std::vector<Task> tasks_of(const Plan& plan, bool share);

}  // namespace manyworlds::farm
