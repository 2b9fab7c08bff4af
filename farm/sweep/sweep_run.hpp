// Runs a sweep in a run directory and reports the results, for the verbs `sweep` and `resume`.
#pragma once

#include <functional>
#include <string>

#include "farm/plan/sweep_job.hpp"
#include "farm/run/run_job.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Runs the job that serialize_job() made; only rank 0 needs its text. Returns the exit code.
int run_sweep_job(const RunOptions& options, const std::string& serialized_job, bool json, Zygote& zygote);

/// The same, but `report` presents the results: it is called once, in the process that prints, when the run has ended.
int run_sweep_job(const RunOptions& options, const std::string& serialized_job,
                  const std::function<void(const io::Results&)>& report, Zygote& zygote);

/// The same for a run whose results are of use before it has ended: `report` is also called, with `complete` false and
/// without any word to the user, when the run was stopped, unless it has no results yet.
using ReportResults = std::function<void(const io::Results&, bool complete)>;
int run_stoppable_sweep(const RunOptions& options, const std::string& serialized_job, const ReportResults& report,
                        Zygote& zygote);

/// Settles the tasks whose results are in the run's journal, computes nothing, and reports the results if that
/// completes the run; otherwise the run is left as drained. Returns the exit code.
int finalize_sweep_job(const RunOptions& options, const std::string& serialized_job, SweepJob& job, TaskQueue& schedule,
                       bool json);

/// Checks that the ranks, the run directory and the store can be used; creates only the store's folder, as the last
/// check. Throws InputError, naming the option.
void check_preconditions(const RunOptions& options);

}  // namespace manyworlds::farm
