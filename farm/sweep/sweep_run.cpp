#include "farm/sweep/sweep_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "farm/plan/task_description.hpp"
#include "farm/results/answer_tables.hpp"
#include "farm/results/memory_advice.hpp"
#include "farm/results/sweep_report.hpp"
#include "farm/run/ledger.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/status/run_status.hpp"
#include "farm/sweep/standing.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/processors.hpp"
#include "farm/system/talk.hpp"
#include "farm/worker/task_limits.hpp"
#include "io/log/run_directory.hpp"
#include "io/log/store.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm {
namespace {

std::vector<std::string> kinds_of(const Plan& plan) {
  std::vector<std::string> kinds(plan.collectives.size(), "collectives");
  kinds.insert(kinds.end(), plan.steps.size(), "steps");
  return kinds;
}

OutcomeOf looking_into(const Schedule& schedule, const Outcome& pending) {
  return
      [&](std::uint32_t task) -> const Outcome& { return schedule.settled(task) ? schedule.outcome(task) : pending; };
}

/// What a watcher is told of the experiments so far, for a hundredth of the time since it was told the last time.
class Telling {
 public:
  void begin(const SweepJob& job) { standing_.emplace(job); }
  Standing& standing() { return standing_.value(); }
  nlohmann::json told(const Schedule& schedule) {
    const auto now = steady_clock::now();
    const Outcome pending{Status::pending, "", 0};
    standing().catch_up(looking_into(schedule, pending), (now - last_) / 100);
    last_ = now;
    nlohmann::json told = standing().told();
    const double sharing = standing().sharing();
    told["sharing"] = sharing > 0 ? nlohmann::json(sharing) : nlohmann::json(nullptr);
    return told;
  }

 private:
  using steady_clock = std::chrono::steady_clock;
  std::optional<Standing> standing_;  // of the process that coordinates
  steady_clock::time_point last_ = steady_clock::now();
};

RunHooks hooks_for(const RunOptions& options, bool share, Telling& telling) {
  RunHooks hooks;
  hooks.kinds = [&telling](const Job& job) {
    const auto& sweep = dynamic_cast<const SweepJob&>(job);
    telling.begin(sweep);
    return kinds_of(sweep.plan());
  };
  hooks.describe = [](const Job& job, std::uint32_t task) {
    return describe_task(dynamic_cast<const SweepJob&>(job), task);
  };
  hooks.on_result = [&telling](std::uint32_t task, const Outcome& outcome) {
    telling.standing().settled(task, outcome);
  };
  hooks.told = [&telling](const Schedule& schedule) { return telling.told(schedule); };
  hooks.write_results = [&options, share, &telling](Job& job, const Schedule& schedule, const RunFigures& figures) {
    const auto& sweep = dynamic_cast<const SweepJob&>(job);
    const Outcome pending{Status::pending, "", 0};
    const OutcomeOf outcome = looking_into(schedule, pending);
    io::Results results = answer_of(sweep.sweep(), sweep.plan(), outcome);
    telling.standing().take_in_all(results);
    add_provenance(results, sweep.plan(), outcome, figures, share);
    io::write_results(options.directory / "results.h5", results);
  };
  return hooks;
}

/// `sweep`: what was run, for advice where nothing could be.
void report(const RunOptions& options, const std::string& objective, bool json, const io::Results& results,
            const std::function<experiments::Sweep()>& sweep) {
  const io::Ranking ranking = io::rank_experiments(results, {io::TopOptions().k, objective, ""});
  if (!json) {
    tell_lines(summary_text(results));
    std::cout << (none_fits(results) ? none_fits_text(results, sweep()) : io::render_text(results, ranking));
    return;
  }
  nlohmann::ordered_json all = summary_json(results);
  all["run"] = options.directory.string();
  all["top"] = nlohmann::ordered_json::parse(io::render_json(results, ranking));
  std::cout << all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

/// The first few failures, one line each.
void say_failures(const RunOptions& options) {
  constexpr std::size_t kSaid = 3;
  const Completion completion = completion_of(options.directory).value_or(Completion());
  std::size_t said = 0;
  for (const Completion::Failure& failure : completion.failures) {
    if (failure.status == name_of(Status::input) || ++said > kSaid) continue;
    tell("failed ({}): {}{}\n", failure.status,
         failure.experiment ? fmt::format("a task of experiment {}: ", *failure.experiment) : "", failure.reason);
  }
  tell("{} of {} tasks failed; {} has them all, and `{} --retry-failed` tries them again\n", completion.failed,
       completion.total, (options.directory / "complete.json").string(), resume_line(options));
}

/// Throws InputError, naming `option`, unless something can be put at `path`; makes nothing.
void check_writable(const std::filesystem::path& path, const std::string& option) {
  std::filesystem::path at = std::filesystem::absolute(path).lexically_normal();
  std::error_code ignored;
  while (!std::filesystem::exists(at, ignored) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  if (!std::filesystem::is_directory(at, ignored))
    throw core::InputError(fmt::format("{} is no directory; give a place that can be written", at.string()),
                           fmt::format("{} {}", option, path.string()));
  if (::access(at.c_str(), W_OK | X_OK) != 0)
    throw core::InputError(fmt::format("{} cannot be written; give a place that can", at.string()),
                           fmt::format("{} {}", option, path.string()));
}

void check_store(const std::string& choice) {
  if (choice == "none") return;
  const auto directory = io::store_directory(choice);
  if (std::error_code ignored; std::filesystem::is_directory(directory, ignored))
    return;  // may be there to be read only
  check_writable(directory, "--store");
  try {
    io::make_private_directories(directory);
  } catch (const core::IoError& error) {
    throw core::InputError(fmt::format("{}; give a folder that can be written, or none", error.what()), "--store");
  }
}

}  // namespace

void check_before_work(const RunOptions& options) {
  if (options.task_memory_bytes) check_task_memory(*options.task_memory_bytes);
  if (options.in_process || !launched_rank()) rank_count(options.ranks);
  check_writable(options.directory, "-o");
  check_store(options.store);
}

int run_sweep_job(const RunOptions& options, const std::string& frozen, bool json, Zygote& zygote) {
  return run_sweep_job(
      options, frozen,
      [&](const io::Results& results) {
        const FrozenJob job = open_job(frozen);
        report(options, job.objective, json, results, [&] { return experiments::thaw(job.sweep); });
      },
      zygote);
}

int run_sweep_job(const RunOptions& options, const std::string& frozen,
                  const std::function<void(const io::Results&)>& report, Zygote& zygote) {
  const bool rank = !options.in_process && launched_rank().has_value();
  const bool supervised = rank && std::getenv(kSupervised) != nullptr;
  Telling telling;
  const RunHooks hooks = hooks_for(options, frozen.empty() || open_job(frozen).terms.share, telling);
  const RunOutcome outcome = run_job(options, frozen, zygote, hooks);
  if (supervised || (rank && is_follower())) return outcome.exit_code;
  if (outcome.exit_code == kExitDrained) tell("stopped on request; `{}` goes on\n", resume_line(options));
  if (outcome.exit_code == kExitFailed) say_failures(options);
  if (outcome.exit_code != kExitDone && outcome.exit_code != kExitFailed) return outcome.exit_code;
  const io::Results results = io::read_results(io::results_of(options.directory));
  report(results);
  return none_fits(results) ? kExitFailed : outcome.exit_code;
}

int settle_sweep_job(const RunOptions& options, const std::string& frozen, SweepJob& job, Schedule& schedule,
                     bool json) {
  Telling telling;
  const RunHooks hooks = hooks_for(options, open_job(frozen).terms.share, telling);
  io::RunDirectory directory = begin_run(options, frozen);
  directory.clear_complete();
  const int code = Ledger(options, directory, 1, job, schedule, hooks).close(!schedule.complete()).exit_code;
  if (code == kExitDrained) return code;
  const io::Results results = io::read_results(io::results_of(options.directory));
  report(options, job.sweep().objective, json, results, [&] { return job.sweep(); });
  return none_fits(results) ? kExitFailed : code;
}

}  // namespace manyworlds::farm
