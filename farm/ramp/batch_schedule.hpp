// Batches over a training, and how long it takes to the loss that a fixed batch reaches.
#pragma once

#include <span>
#include <vector>

#include "farm/ramp/critical_batch.hpp"
#include "farm/ramp/simulated_batches.hpp"

namespace manyworlds::farm::ramp {

/// One experiment's batch and layout, from where the one before ended.
struct Leg {
  std::size_t candidate = 0;
  double to = 0;  // in steps of an infinite batch
};

struct Phase {
  std::size_t candidate = 0;
  double from_tokens = 0, to_tokens = 0;  // trained since the beginning
  double critical = 0;                    // tokens, at its beginning
  double steps = 0, time_s = 0;           // without a restart
};

struct BatchSchedule {
  std::vector<Phase> phases;
  int restarts = 0;
  double time_s = 0;  // restarts included
  double tokens() const { return phases.empty() ? 0 : phases.back().to_tokens; }
  double steps() const;
};

/// Follows the legs. Those that lead no further are left out; each change of the layout takes `restart_s`.
BatchSchedule follow(const CriticalBatch& critical, std::span<const Candidate> candidates, std::span<const Leg> legs,
                     double restart_s);

/// Returns the seconds to `end` of the fastest of `members` at every moment: no schedule of these takes less.
double least_time_s(const CriticalBatch& critical, std::span<const Candidate> candidates,
                    const std::vector<std::size_t>& members, double end);

/// Returns the schedule to `end`, in steps of an infinite batch, that takes the least time when each change of the
/// layout takes `restart_s`. With none it is the lower envelope of all experiments. With some, no change is better
/// elsewhere than where the two experiments are equally fast (its time is convex in the moment of a change, as their
/// lines cross once; and what a change there would skip costs no less than without it): dynamic programming over these
/// moments and the layouts, exact. Throws core::InputError, with `name`, where these are too many.
BatchSchedule best_schedule(const CriticalBatch& critical, std::span<const Candidate> candidates, double end,
                            double restart_s, const std::string& name);

/// Returns the candidate that reaches `end` first with one batch; of those with `batch` samples unless that is 0. There
/// must be one.
Leg best_fixed(const CriticalBatch& critical, std::span<const Candidate> candidates, double end,
               std::int64_t batch = 0);

}  // namespace manyworlds::farm::ramp
