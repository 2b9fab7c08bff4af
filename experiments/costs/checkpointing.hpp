// What failures and checkpoints leave of a training run's time. Failures come as a Poisson process, also while the run
// restarts (Daly, "A higher order estimate of the optimum checkpoint interval", FGCS 2006); checkpoints are taken as by
// CheckFreq (Mohan et al., FAST 2021) and by Gemini (Wang et al., SOSP 2023). All times in s.
#pragma once

#include <cstdint>
#include <optional>

namespace manyworlds::experiments {

/// A failure ends what every rank does: the run restarts from a checkpoint, and what was done since is done again.
struct Failures {
  double mean_s = 0;            // between two of them, of the whole machine; > 0
  double to_storage_share = 1;  // of them: those after which no checkpoint in memory is whole, 0 to 1
  double restart_s = 0;         // from a failure to the next step, from storage
  double memory_restart_s = 0;  // the same from memory
};

/// A run works for the interval, then waits while a checkpoint is taken; it is in memory then, and of every
/// `persist_every` of them one is in storage `persist_s` later, while the run goes on.
struct Checkpoints {
  double block_s = 0;
  double persist_s = 0;
  std::int64_t persist_every = 1;
};

/// Shares of a long run's time; they add up to 1.
struct RunShares {
  double goodput = 0;        // work that no failure took back
  double repeated = 0;       // work that one did, or will
  double checkpointing = 0;  // waiting for checkpoints
  double restarting = 0;
};

/// The expectation, exactly, for any interval_s > 0. A run without checkpoints has one interval, the whole of its work.
RunShares run_shares(const Checkpoints& checkpoints, const Failures& failures, double interval_s);

/// The same by the formula that goodput is mostly published with, to first order in what a failure costs over the time
/// between failures: [1 - (R + (interval + block) / 2) / M] / (1 + block / interval), and what else is lost with
/// storage. Within 1.5 % of run_shares() while a failure costs less than a seventh of the time between them, else too
/// low; NaN where it is no share at all.
double first_order_goodput(const Checkpoints& checkpoints, const Failures& failures, double interval_s);

/// sqrt(2 block M): the best interval to first order (Young, CACM 1974).
double young_interval_s(double block_s, double mean_s);

struct CheckpointPlan {
  Checkpoints checkpoints;
  double interval_s = 0;
  RunShares shares;
};

/// The interval that leaves most goodput (to a millionth of itself) among those in which storage keeps up, that is
/// persist_s <= persist_every (interval + block); with `persist_every` 0 the best of these as well. With `interval_s`
/// given only persist_every is chosen, the least that keeps up.
CheckpointPlan best_plan(Checkpoints checkpoints, const Failures& failures, std::optional<double> interval_s = {});

}  // namespace manyworlds::experiments
