// From a sweep to what must be computed for it: one step for each distinct world that fits into memory, and one
// collective for each distinct one that those steps may ask for. Recipes are numbers, so a plan is small and every
// process that makes it from the same sweep makes the same one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory/footprint.hpp"
#include "core/sharing/key.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/protocol/job.hpp"

namespace manyworlds::farm {

inline constexpr std::uint32_t kNoStep = UINT32_MAX;

struct PlannedExperiment {
  core::memory::Footprint memory;  // of the rank that needs most; on several kinds of machines: that has least left
  std::int64_t memory_bytes = 0;   // what its GPU has
  std::uint32_t step = kNoStep;    // in Plan::steps; none: it does not fit, or is elsewhere
  bool elsewhere = false;          // another shard's
  bool fits() const { return memory.total() <= memory_bytes; }
};

/// Entered by all members at once and alone. `use` is its number in World::uses() of that experiment.
struct PlannedCollective {
  core::sharing::Key key;
  std::uint32_t experiment = 0;
  std::uint32_t use = 0;
  double cost = 0;
  std::uint32_t layout = 0;  // of the experiment: those of one have fabric, routes and ranks' places in common
  std::uint32_t members = 0;
};

struct PlannedStep {
  core::sharing::Key key;
  std::uint32_t experiment = 0;            // the first that is this world
  std::uint32_t experiments = 0;           // how many are
  std::vector<std::uint32_t> collectives;  // that it may ask for, ascending
  std::uint64_t instances = 0;             // collectives that one step runs
  double cost = 0;
  std::uint32_t layout = 0;  // as of a collective
};

struct Plan {
  std::vector<PlannedExperiment> experiments;
  std::vector<PlannedCollective> collectives;
  std::vector<PlannedStep> steps;

  /// Tasks are the collectives and then the steps.
  std::uint32_t task_of_step(std::uint32_t step) const { return static_cast<std::uint32_t>(collectives.size()) + step; }
  bool is_step(std::uint32_t task) const { return task >= collectives.size(); }
};

/// `share` off: every experiment is a step of its own that asks for nothing. Throws InputError, naming the experiment,
/// where one cannot be simulated at all (a transport that would have to drop).
Plan make_plan(const experiments::Sweep& sweep, bool share = true);

std::vector<Task> tasks_of(const Plan& plan, bool share);

}  // namespace manyworlds::farm
