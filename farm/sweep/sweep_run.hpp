// The one way in which `sweep` and `resume` run a sweep in a run directory and say what came out.
#pragma once

#include <functional>
#include <string>

#include "farm/plan/sweep_job.hpp"
#include "farm/run/run_job.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// `frozen` as frozen_job() made it; of ranks only rank 0 needs it. Returns the exit code.
int run_sweep_job(const RunOptions& options, const std::string& frozen, bool json, Zygote& zygote);

/// The same, and `report` says what came out: once, in the process that talks to people, when the run has ended.
int run_sweep_job(const RunOptions& options, const std::string& frozen,
                  const std::function<void(const io::Results&)>& report, Zygote& zygote);

/// Settles what the run's journal knows, computes nothing, and says what came out if that was all: else the run is left
/// as drained. Returns the exit code.
int settle_sweep_job(const RunOptions& options, const std::string& frozen, SweepJob& job, Schedule& schedule,
                     bool json);

/// Whether ranks, run directory and store can be had at all; makes nothing but the store's folder, and that last.
/// Throws InputError, naming the option.
void check_before_work(const RunOptions& options);

}  // namespace manyworlds::farm
