// What the experiments of a sweep would take one by one, each in a process that computes all that it needs. Some are
// run so when the sweep is complete, which is also an audit: their results must be those of the sweep.
#pragma once

#include <cstddef>
#include <optional>

#include "farm/effort/compute_alone.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/results/result_tables.hpp"

namespace manyworlds::farm {

struct OneByOneLimits {
  double min_cpu_s = 10;               // of the run: for shorter ones nothing is estimated
  double share_of_elapsed = 1.0 / 30;  // how much longer the run may take for it
  std::size_t samples = 100;
};

/// Draws experiments that ran and computes each alone. What all of them take alone beyond what their steps took in the
/// sweep is estimated from these as by Hansen and Hurwitz (1943). Returns nullopt if there is no time for three
/// samples, or one cannot be computed. `elapsed_s` is what the run took. Throws core::InternalError if an experiment
/// has another result alone than in the sweep.
std::optional<OneByOne> estimate_one_by_one(const SweepJob& job, const OutcomeOf& outcome, double elapsed_s,
                                            const ComputeAlone& compute_alone, const OneByOneLimits& limits = {});

}  // namespace manyworlds::farm
