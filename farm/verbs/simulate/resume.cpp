// `manyworlds resume RUN_DIR`: continues an interrupted sweep.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/phases/expanded_phases.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/verbs/simulate/phases_run.hpp"

namespace manyworlds::farm::commands {
namespace {

/// Returns the sweep of a job if `manyworlds phases` made it.
std::optional<experiments::Sweep> sweep_of_phases(const std::string& serialized) {
  experiments::Sweep sweep = experiments::deserialize(parse_job(serialized).sweep);
  if (!experiments::phases::is_of_phases(sweep)) return std::nullopt;
  return sweep;
}

/// Goes on with a run of `manyworlds phases`. What it was made of is in the run directory, but for catalogs and cluster
/// files of the user's own: without these, the line that began it is what tells the iteration.
int resume_phases(const RunOptions& run, const experiments::Sweep& sweep, const std::string& serialized, bool json,
                  Zygote& zygote) {
  std::optional<experiments::phases::ExpandedPhases> expanded;
  std::string reason;
  try {
    expanded = experiments::phases::expand_again(sweep, experiments::Catalog());
  } catch (const core::InputError& error) {
    reason = error.what();
  }
  if (expanded) return run_phases_job(run, *expanded, serialized, json, zygote);
  const auto report = [&](const io::Results&) {
    std::cout << fmt::format(
        "{} has run; `manyworlds phases FILE -o {}`, as it was begun, tells its iteration, which cannot be told "
        "here ({})\n",
        sweep.name, run.directory.string(), reason);
  };
  return run_sweep_job(run, serialized, report, zygote);
}

int run_resume(const Invocation& invocation) {
  cxxopts::Options options("manyworlds resume", "Continues an interrupted sweep.");
  options.add_options()("run", "the run directory", cxxopts::value<std::string>())("json", "JSON output");
  add_run_options(options);
  add_serve_options(options);
  options.add_options()("retry-failed", "compute again what failed");
  options.parse_positional({"run"});
  options.positional_help("RUN_DIR");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool json = parsed->count("json") > 0;
  RunOptions run = read_run_options(*parsed, required(*parsed, "run"));
  apply_serve_options(*parsed, run);
  run.retry_failed = parsed->count("retry-failed") > 0;
  if (is_follower() && !run.in_process) return run_sweep_job(run, "", json, *invocation.zygote);

  const std::string serialized = read_serialized_job(run.directory);
  const bool share = parse_job(serialized).options.share;
  if (no_sharing(*parsed) && share)
    throw core::InputError(
        "this run was started with sharing and must continue with it; resume it without --no-sharing",
        run.directory.string());
  if (!share) run.store = "none";
  check_preconditions(run);
  if (const auto sweep = sweep_of_phases(serialized))
    return resume_phases(run, *sweep, serialized, json, *invocation.zygote);
  return run_sweep_job(run, serialized, json, *invocation.zygote);
}

}  // namespace

Command resume_command() {
  return {.name = "resume", .summary = "continues an interrupted sweep", .run = run_resume, .simulates = true};
}

}  // namespace manyworlds::farm::commands
