// `manyworlds resume RUN_DIR`: continues an interrupted sweep.
#include "core/base/error.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

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
  return run_sweep_job(run, serialized, json, *invocation.zygote);
}

}  // namespace

Command resume_command() {
  return {.name = "resume", .summary = "continues an interrupted sweep", .run = run_resume, .simulates = true};
}

}  // namespace manyworlds::farm::commands
