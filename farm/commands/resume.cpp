// `manyworlds resume RUN_DIR`: goes on with what an interrupted sweep left.
#include "core/error.hpp"
#include "farm/commands/shared_words.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"
#include "farm/sweep_job.hpp"
#include "farm/sweep_run.hpp"
#include "io/run_directory.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Whether the run shares, and what it ranks by. Throws InputError, naming the file, where that cannot be told.
std::pair<bool, std::string> thawed(const std::string& frozen, const RunOptions& run) {
  try {
    return {terms_of(frozen).share, experiments::thaw(frozen).objective};
  } catch (const core::InputError&) {
    throw core::InputError("damaged, or of another version; begin the sweep again in a new directory",
                           (run.directory / "sweep.frozen.json").string());
  }
}

}  // namespace

int run_resume(const Invocation& invocation) {
  cxxopts::Options options("manyworlds resume", "Goes on with what an interrupted sweep left.");
  options.add_options()("run", "the run directory", cxxopts::value<std::string>())("json", "what is said, as JSON");
  add_run_words(options);
  options.add_options()("retry-failed", "compute again what failed");
  options.parse_positional({"run"});
  options.positional_help("RUN_DIR");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool json = parsed->count("json") > 0;
  RunOptions run = run_words(*parsed, required(*parsed, "run"), "resume", invocation);
  run.retry_failed = parsed->count("retry-failed") > 0;
  if (is_follower() && !run.in_process) return run_sweep_job(run, "", "", json, *invocation.zygote);

  const std::string frozen = io::read_frozen_sweep(run.directory);
  const auto [share, objective] = thawed(frozen, run);
  if (no_sharing(*parsed) && share)
    throw core::InputError("this run was begun with sharing and goes on with it; without --no-sharing it resumes",
                           run.directory.string());
  if (!share) run.store = "none";
  check_before_work(run);
  return run_sweep_job(run, frozen, objective, json, *invocation.zygote);
}

}  // namespace manyworlds::farm::commands
