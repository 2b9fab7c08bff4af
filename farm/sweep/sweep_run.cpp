#include "farm/sweep/sweep_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/sweep/best.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/effort/one_by_one.hpp"
#include "farm/plan/task_description.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/results/sweep_report.hpp"
#include "farm/run/run_recorder.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/status/run_status.hpp"
#include "farm/sweep/live_summary.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/texts/memory_advice.hpp"
#include "farm/worker/task_limits.hpp"
#include "io/log/run_directory.hpp"
#include "io/log/store.hpp"
#include "io/ranking/top.hpp"

namespace manyworlds::farm {
namespace {

std::vector<std::string> kinds_of(const Plan& plan) {
  std::vector<std::string> kinds;
  for (std::uint32_t task = 0; task < plan.task_of_step(static_cast<std::uint32_t>(plan.steps.size())); ++task)
    kinds.emplace_back(plan.kind_of(task));
  return kinds;
}

OutcomeOf outcomes_in(const TaskQueue& schedule, const Outcome& pending) {
  return
      [&](std::uint32_t task) -> const Outcome& { return schedule.settled(task) ? schedule.outcome(task) : pending; };
}

/// Reports the status of the experiments to watchers. Computing it takes about 1 % of the time since the last report.
class StatusReporter {
 public:
  void begin(const SweepJob& job) {
    summary_.emplace(job);
    is_selected_ = job.sweep().best > 0;
  }
  LiveSummary& summary() { return summary_.value(); }
  /// Reports the CPU time of the experiments one by one over that of the run; 0: it is not known.
  void told(double sharing) { sharing_ = sharing; }
  nlohmann::json status(const TaskQueue& schedule) {
    const auto now = steady_clock::now();
    const Outcome pending{Status::pending, "", 0};
    summary().catch_up(outcomes_in(schedule, pending), (now - last_) / 100);
    last_ = now;
    nlohmann::json members = summary().to_json();
    if (is_selected_) members["time_left_s"] = nullptr;  // how much is left shows only when nothing is
    members["sharing"] = sharing_ > 0 ? nlohmann::json(sharing_) : nlohmann::json(nullptr);
    return members;
  }

 private:
  using steady_clock = std::chrono::steady_clock;
  std::optional<LiveSummary> summary_;  // set in the coordinating process
  steady_clock::time_point last_ = steady_clock::now();
  double sharing_ = 0;
  bool is_selected_ = false;
};

/// Returns what the experiments of a complete run would take one by one, if that can be measured.
std::optional<OneByOne> one_by_one(const RunOptions& options, const SweepJob& job, const TaskQueue& schedule,
                                   const OutcomeOf& outcome, const RunStatistics& statistics, Zygote* zygote) {
  if (zygote == nullptr || !schedule.complete() || statistics.computed == 0) return std::nullopt;
  const std::uint64_t memory_bytes = options.task_memory_bytes.value_or(memory_share_bytes(statistics.ranks));
  return estimate_one_by_one(job, outcome, statistics.elapsed_s, in_new_processes(job, memory_bytes, *zygote));
}

/// Appends how many best were asked for, what is proven of everything else, and of a space of which not all was listed
/// how large it is.
void add_certificate(io::Results& results, const experiments::Sweep& sweep,
                     const std::optional<SelectedResults>& selected) {
  const auto add = [&](const char* name, auto value) { results.provenance.push_back({name, value}); };
  add("best", static_cast<std::int64_t>(sweep.best));
  if (selected) add("best_analytic", static_cast<std::int64_t>(selected->analytic));
  if (selected && selected->proven_gap) add("best_gap", *selected->proven_gap);
  if (!sweep.front.empty()) {
    const auto ordered = [](const std::string& name) {
      return name + (experiments::ordered_column(name).more_is_better ? " desc" : " asc");
    };
    add("front_objective", ordered(sweep.objective));
    add("front_column", ordered(sweep.front));
    if (selected && selected->front_gap) add("front_gap", *selected->front_gap);
  }
  if (!sweep.space) return;
  add("space_points", sweep.space->points);
  add("space_bounds", sweep.space->looked_at);
  if (sweep.space->bound) add("space_bound", *sweep.space->bound);
}

/// Without `zygote` nothing can be simulated any more.
RunHooks hooks_for(const RunOptions& options, bool share, StatusReporter& reporter, Zygote* zygote) {
  RunHooks hooks;
  hooks.selection = [](const Job& job, int ranks) -> std::unique_ptr<Selection> {
    const auto& sweep = dynamic_cast<const SweepJob&>(job);
    if (sweep.sweep().best == 0) return nullptr;
    return std::make_unique<BestSelection>(sweep, static_cast<std::size_t>(ranks));
  };
  hooks.kinds = [&reporter](const Job& job) {
    const auto& sweep = dynamic_cast<const SweepJob&>(job);
    reporter.begin(sweep);
    return kinds_of(sweep.plan());
  };
  hooks.describe = [](const Job& job, std::uint32_t task) {
    return describe_task(dynamic_cast<const SweepJob&>(job), task);
  };
  hooks.on_result = [&reporter](std::uint32_t task, const Outcome& outcome) {
    reporter.summary().settled(task, outcome);
  };
  hooks.extra_status = [&reporter](const TaskQueue& schedule) { return reporter.status(schedule); };
  hooks.write_results = [&options, share, &reporter, zygote](Job& job, const TaskQueue& schedule,
                                                             const RunStatistics& statistics) {
    const auto& sweep = dynamic_cast<const SweepJob&>(job);
    const Outcome pending{Status::pending, "", 0};
    const OutcomeOf outcome = outcomes_in(schedule, pending);
    const bool is_selected = sweep.sweep().best > 0 && schedule.complete();
    std::optional<SelectedResults> selected;
    if (is_selected) selected = selected_results(sweep, outcome);
    io::Results results =
        make_results(sweep.sweep(), selected ? selected->plan : sweep.plan(), selected ? selected->outcome : outcome);
    reporter.summary().add_all_rows(results);
    const auto alone = share ? one_by_one(options, sweep, schedule, outcome, statistics, zygote) : std::nullopt;
    add_provenance(results, sweep.plan(), outcome, statistics, share, alone);
    if (sweep.sweep().best > 0) add_certificate(results, sweep.sweep(), selected);
    reporter.told(io::provenance_number(results, "one_by_one_over_sweep"));
    io::write_results(options.directory / "results.h5", results);
  };
  return hooks;
}

/// Prints the results; `sweep` returns the sweep, for advice if no experiment fits.
void report(const RunOptions& options, bool json, const io::Results& results,
            const std::function<experiments::Sweep()>& sweep) {
  const io::Ranking ranking = io::rank_experiments(results, {});
  if (!json) {
    print_lines(summary_text(results));
    std::cout << (none_fits(results) ? none_fits_text(results, sweep()) : io::render_text(results, ranking));
    return;
  }
  nlohmann::ordered_json all = summary_json(results);
  all["run"] = options.directory.string();
  all["top"] = nlohmann::ordered_json::parse(io::render_json(results, ranking));
  std::cout << all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

/// Prints the first few failures, one line each.
void print_failures(const RunOptions& options) {
  constexpr std::size_t kMaxShown = 3;
  const Completion completion = completion_of(options.directory).value_or(Completion());
  std::size_t shown = 0;
  for (const Completion::Failure& failure : completion.failures) {
    if (failure.status == name_of(Status::input) || ++shown > kMaxShown) continue;
    print_message("failed ({}): {}{}\n", failure.status,
                  failure.experiment ? fmt::format("a task of experiment {}: ", *failure.experiment) : "",
                  failure.reason);
  }
  print_message("{} of {} tasks failed; {} has them all, and `{} --retry-failed` tries them again\n", completion.failed,
                completion.total, (options.directory / "complete.json").string(), resume_line(options));
}

/// Returns whether another process prints what is to be said of this run.
bool is_silent_rank(const RunOptions& options) {
  return !options.in_process && launched_rank() && (std::getenv(kSupervised) != nullptr || is_follower());
}

/// Throws InputError, naming `option`, unless a file can be created at `path`; creates nothing.
void check_writable(const std::filesystem::path& path, const std::string& option) {
  std::filesystem::path at = std::filesystem::absolute(path).lexically_normal();
  std::error_code ignored;
  while (!std::filesystem::exists(at, ignored) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  if (!std::filesystem::is_directory(at, ignored))
    throw core::InputError(fmt::format("{} is not a directory; give a writable path", at.string()),
                           fmt::format("{} {}", option, path.string()));
  if (::access(at.c_str(), W_OK | X_OK) != 0)
    throw core::InputError(fmt::format("{} cannot be written; give a place that can", at.string()),
                           fmt::format("{} {}", option, path.string()));
}

void check_store(const std::string& choice) {
  if (choice == "none") return;
  const auto directory = io::store_directory(choice);
  if (std::error_code ignored; std::filesystem::is_directory(directory, ignored))
    return;  // an existing store may be read-only
  check_writable(directory, "--store");
  try {
    io::make_private_directories(directory);
  } catch (const core::IoError& error) {
    throw core::InputError(fmt::format("{}; give a folder that can be written, or none", error.what()), "--store");
  }
}

}  // namespace

void check_preconditions(const RunOptions& options) {
  if (options.task_memory_bytes) check_task_memory(*options.task_memory_bytes);
  if (options.in_process || !launched_rank()) rank_count(options.ranks);
  check_writable(options.directory, "-o");
  check_store(options.store);
}

int run_sweep_job(const RunOptions& options, const std::string& serialized_job, bool json, Zygote& zygote) {
  return run_sweep_job(
      options, serialized_job,
      [&](const io::Results& results) {
        report(options, json, results, [&] { return experiments::deserialize(parse_job(serialized_job).sweep); });
      },
      zygote);
}

int run_sweep_job(const RunOptions& options, const std::string& serialized_job,
                  const std::function<void(const io::Results&)>& report, Zygote& zygote) {
  const int code = run_stoppable_sweep(
      options, serialized_job, [&](const io::Results& results, bool complete) { complete ? report(results) : void(); },
      zygote);
  if (code == kExitDrained && !is_silent_rank(options))
    print_message("stopped on request; `{}` resumes it\n", resume_line(options));
  return code;
}

int run_stoppable_sweep(const RunOptions& options, const std::string& serialized_job, const ReportResults& report,
                        Zygote& zygote) {
  StatusReporter reporter;
  const RunHooks hooks =
      hooks_for(options, serialized_job.empty() || parse_job(serialized_job).options.share, reporter, &zygote);
  const RunOutcome outcome = run_job(options, serialized_job, zygote, hooks);
  if (is_silent_rank(options)) return outcome.exit_code;
  if (outcome.exit_code == kExitFailed) print_failures(options);
  const bool complete = outcome.exit_code == kExitDone || outcome.exit_code == kExitFailed;
  if (!complete && outcome.exit_code != kExitDrained) return outcome.exit_code;
  if (!complete && !io::has_results(options.directory)) return outcome.exit_code;  // it stopped before the first
  const io::Results results = io::read_results(io::results_path(options.directory));
  report(results, complete);
  return complete && none_fits(results) ? kExitFailed : outcome.exit_code;
}

int finalize_sweep_job(const RunOptions& options, const std::string& serialized_job, SweepJob& job, TaskQueue& schedule,
                       bool json) {
  StatusReporter reporter;
  const RunHooks hooks = hooks_for(options, parse_job(serialized_job).options.share, reporter, nullptr);
  io::RunDirectory directory = begin_run(options, serialized_job);
  directory.clear_complete();
  const int code = RunRecorder(options, directory, 1, job, schedule, hooks).close(!schedule.complete()).exit_code;
  if (code == kExitDrained) return code;
  const io::Results results = io::read_results(io::results_path(options.directory));
  report(options, json, results, [&] { return job.sweep(); });
  return none_fits(results) ? kExitFailed : code;
}

}  // namespace manyworlds::farm
