// Share of a training run's time that failures and checkpoints leave. Failures are a Poisson process, also during
// restarts (Daly, "A higher order estimate of the optimum checkpoint interval", FGCS 2006); checkpoints are taken as in
// CheckFreq (Mohan et al., FAST 2021) and Gemini (Wang et al., SOSP 2023). All times are in s.
#pragma once

#include <cstdint>
#include <optional>

namespace manyworlds::experiments {

/// A failure stops every rank: the run restarts from a checkpoint and repeats the work done since then.
struct Failures {
  double mtbf_s = 0;                 // mean time between failures of the whole machine; > 0
  double storage_restart_share = 1;  // share of failures after which no checkpoint in memory is complete, 0 to 1
  double restart_s = 0;              // from a failure to the next step, reading from storage
  double memory_restart_s = 0;       // from a failure to the next step, reading from memory
};

/// The run works for an interval, then waits until a checkpoint is in memory. One in `checkpoints_per_persist`
/// checkpoints is in storage `persist_s` later, while the run continues.
struct Checkpoints {
  double block_s = 0;
  double persist_s = 0;
  std::int64_t checkpoints_per_persist = 1;
};

/// Shares of a long run's time, which add up to 1.
struct RunShares {
  double goodput = 0;        // work that no failure undoes
  double rework = 0;         // work that a failure undoes
  double checkpointing = 0;  // waiting for checkpoints
  double restarting = 0;
};

/// Returns the exact expectation for any interval_s > 0. A run without checkpoints has one interval, which is all of
/// its work.
RunShares run_shares(const Checkpoints& checkpoints, const Failures& failures, double interval_s);

/// Returns goodput by the formula that is published most, which is of first order in the cost of a failure over the
/// time between failures: [1 - (R + (interval + block) / 2) / M] / (1 + block / interval), less the additional losses
/// of a restart from storage. It is within 1.5 % of run_shares() while a failure costs less than a seventh of the time
/// between failures, and too low beyond that; NaN where it is not a share.
double first_order_goodput(const Checkpoints& checkpoints, const Failures& failures, double interval_s);

/// Returns sqrt(2 block M), the best interval to first order (Young, CACM 1974).
double young_interval_s(double block_s, double mtbf_s);

struct CheckpointPlan {
  Checkpoints checkpoints;
  double interval_s = 0;
  RunShares shares;
};

/// Returns the interval of highest goodput (within one millionth) among those that storage keeps up with, persist_s <=
/// checkpoints_per_persist (interval + block). If `checkpoints_per_persist` is 0, the best value of it is chosen too.
/// If `interval_s` is given, only checkpoints_per_persist is chosen, the smallest that storage keeps up with.
CheckpointPlan best_checkpoint_plan(Checkpoints checkpoints, const Failures& failures,
                                    std::optional<double> interval_s = {});

}  // namespace manyworlds::experiments
