#include "farm/run/run_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/in_process_transport.hpp"
#include "farm/protocol/mpi_transport.hpp"
#include "farm/run/run_recorder.hpp"
#include "farm/run/startup_watchdog.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/serve/live_server.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "farm/system/launcher.hpp"
#include "farm/worker/rank_loop.hpp"
#include "io/log/store.hpp"

namespace manyworlds::farm {

namespace {

constexpr std::chrono::seconds kFollowerGrace{5};  // extra start time of followers over the coordinating rank

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const core::InputError*>(&error) != nullptr) return kExitInput;
  if (dynamic_cast<const core::IoError*>(&error) != nullptr) return kExitIo;
  return kExitInternal;
}

/// Returns the reason with which an error ends a run. A failed disk loses no finished result, so that message says how
/// to continue.
std::string reason_of(const std::exception& error, const RunOptions& options) {
  const auto* failure = dynamic_cast<const core::IoError*>(&error);
  if (failure == nullptr) return error.what();
  const bool full = failure->code == ENOSPC || failure->code == EDQUOT;
  const bool begun = io::is_run_directory(options.directory);
  return fmt::format("{}; {}, then {}", failure->what(), full ? "make room" : "fix that",
                     begun ? fmt::format("`{}` resumes it", resume_line(options)) : "give the same line again");
}

class FailedRun final : public core::IoError {
 public:
  FailedRun(const core::IoError& error, const RunOptions& options)
      : core::IoError(error), reason_(reason_of(error, options)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

int threads_of(const RunOptions& options) {
  return options.threads.value_or(threads_per_rank());
}

LoopOptions loop_options(const RunOptions& options, int workers, bool launched) {
  const TaskLimits limits{options.task_memory_bytes.value_or(memory_share_bytes(workers)), options.task_time,
                          static_cast<std::size_t>(threads_of(options))};
  return {.worker = {},
          .watch_parent = launched,
          .drain_on_ctrl_c = !launched,
          .limits = limits,
          .components =
              options.store == "none" ? "" : io::components_directory(io::store_directory(options.store)).string(),
          .drain_after = options.drain_after};
}

/// A run that stops after some time lets running tasks finish for as long at most.
CoordinatorOptions coordinator_options(const RunOptions& options) {
  CoordinatorOptions result;
  if (options.drain_after)
    result.drain_grace_ms = std::min<std::int64_t>(result.drain_grace_ms, options.drain_after->count());
  return result;
}

/// Throws the error with which the run ends if no worker can serve it.
void check_served(const Coordinator& coordinator, std::int64_t now_ms) {
  const auto unserved = coordinator.unserved(now_ms);
  if (!unserved) return;
  const std::string what = fmt::format("no worker can serve this run: {}", unserved->reason);
  if (unserved->out_of_memory) throw core::InputError(what + "; give them more, or run fewer at a time (-j)");
  throw core::InternalError(what);
}

/// The coordinating process: everything between planning and complete.json.
RunOutcome coordinate(const RunOptions& options, io::RunDirectory& directory, const std::string& serialized_job,
                      int ranks, Zygote& zygote, const RunHooks& hooks, MessageTransport& transport, RankLoop& loop,
                      ProgressLine* line, serve::LiveServer* live) try {
  const std::unique_ptr<Job> job = zygote.kind().plan(serialized_job);
  return_freed_memory();  // planning allocates much memory that is not kept
  const std::unique_ptr<Selection> selection = hooks.selection ? hooks.selection(*job, ranks) : nullptr;
  TaskQueue queue(job->tasks(), selection.get());
  RunRecorder ledger(options, directory, ranks, *job, queue, hooks);
  try {
    Coordinator coordinator(queue, transport, *job, coordinator_options(options));
    const auto each_second = [&] {
      const auto& status =
          ledger.each_second(coordinator.draining() ? "draining" : "running", coordinator.loads(loop.now_ms()));
      if (live != nullptr) live->poll();
      if (line != nullptr) line->draw(progress_line(status));
    };
    if (!queue.complete()) {
      loop.coordinate(coordinator, each_second);
      loop.run();
      ledger.each_second("running", coordinator.loads(loop.now_ms()));  // what the last results have told
    } else {
      coordinator.dismiss();
    }
    if (line != nullptr) line->clear();
    if (!queue.complete()) check_served(coordinator, loop.now_ms());
    return ledger.close(!queue.complete());
  } catch (const std::exception&) {
    if (line != nullptr) line->clear();
    throw;
  }
} catch (const std::exception& error) {
  declare_failed(directory, exit_code_of(error), reason_of(error, options));
  throw;
}

/// Claims the run's directory for this process and removes the record of an earlier end.
io::RunDirectory claim_directory(const RunOptions& options, const std::string& serialized_job) {
  io::RunDirectory directory = begin_run(options, serialized_job);
  directory.clear_complete();
  return directory;
}

RunOutcome run_in_process(const RunOptions& options, const std::string& serialized_job, int ranks, Zygote& zygote,
                          const RunHooks& hooks, serve::LiveServer* live) {
  io::RunDirectory directory = claim_directory(options, serialized_job);
  InProcessNetwork network(ranks);
  RankLoop loop(zygote, loop_options(options, ranks, false));
  for (int rank = 0; rank < ranks; ++rank) loop.add_worker(network.endpoint(rank));
  ProgressLine line;
  return coordinate(options, directory, serialized_job, ranks, zygote, hooks, network.endpoint(0), loop, &line, live);
}

/// Returns whether a supervisor started this rank. The supervisor prints messages and reads the end of the run from
/// complete.json.
bool is_supervised() {
  return std::getenv(kSupervised) != nullptr;
}

/// A supervised run's end is known from complete.json and not from mpirun, so dead ranks need not delay it.
MpiTimeouts mpi_timeouts() {
  constexpr double kTimeout_s = 5;
  if (!is_supervised()) return {};
  return {.silence_s = kTimeout_s, .min_wait_s = kTimeout_s};
}

/// Returns false only if the file system shows that nobody coordinates this run any more.
bool may_be_coordinated(const RunOptions& options) {
  try {
    return io::is_in_use(options.directory);
  } catch (const core::IoError&) {
    return true;
  }
}

/// A follower whose run ended without a message records the reason, unless another process did or still can.
void declare_abandoned(const RunOptions& options, const std::string& why) {
  if (is_supervised()) return;
  print_message("manyworlds: {}\n", why);
  try {
    if (!io::is_run_directory(options.directory) || io::read_complete(options.directory)) return;
    io::RunDirectory directory = resume_run(options);
    declare_failed(directory, kExitInternal, why);
  } catch (const std::exception&) {  // the coordinating rank holds the directory and will record the reason
  }
}

RunOutcome run_follower(const RunOptions& options, Zygote& zygote) {
  const std::string resume_hint = fmt::format("`{}` resumes it", resume_line(options));
  // The coordinating rank gives up earlier, because it knows more.
  auto watch = std::make_unique<StartupWatchdog>(options.start_time + kFollowerGrace, [&](const std::string& why) {
    declare_abandoned(options, fmt::format("{}; {}", why, resume_hint));
    return kExitInternal;
  });
  MpiTransport transport(mpi_timeouts());
  watch.reset();
  bool abandoned = false;
  {
    LoopOptions follower_options = loop_options(options, local_rank_count(transport.size()), true);
    follower_options.coordinator_may_live = [&options] { return may_be_coordinated(options); };
    RankLoop loop(zygote, follower_options);
    loop.add_worker(transport);
    loop.run();
    abandoned = loop.abandoned();
  }
  if (abandoned) declare_abandoned(options, fmt::format("the coordinating rank died; {}", resume_hint));
  RunOutcome outcome;
  outcome.state = RunOutcome::State::delegated;
  transport.leave(!abandoned, kExitDone);
  return outcome;
}

/// Reports the end of a coordinating rank: on stderr, unless a supervisor will read it from complete.json.
void report_end(const RunOptions& options, const std::string& reason) {
  if (!is_supervised() || !io::read_complete(options.directory)) print_message("manyworlds: {}\n", reason);
}

RunOutcome run_leader(const RunOptions& options, const std::string& serialized_job, Zygote& zygote,
                      const RunHooks& hooks, serve::LiveServer* live) {
  // The directory is claimed before MPI starts, so that observers see that the run is coordinated. An error is kept
  // until MPI can tell the other ranks.
  std::optional<io::RunDirectory> directory;
  std::exception_ptr claim_error;
  try {
    directory.emplace(claim_directory(options, serialized_job));
  } catch (const std::exception&) {
    claim_error = std::current_exception();
  }
  auto watch = std::make_unique<StartupWatchdog>(options.start_time, [&](const std::string& why) {
    const std::string reason = fmt::format("{}; `{}` resumes it", why, resume_line(options));
    if (directory) declare_failed(*directory, kExitInternal, reason);
    report_end(options, reason);
    return kExitInternal;
  });
  MpiTransport transport(mpi_timeouts());
  watch.reset();
  RunOutcome outcome;
  bool orderly = false;
  try {
    if (claim_error) std::rethrow_exception(claim_error);
    RankLoop loop(zygote, loop_options(options, local_rank_count(transport.size()), true));
    loop.add_worker(transport);
    outcome = coordinate(options, *directory, serialized_job, transport.size(), zygote, hooks, transport, loop, nullptr,
                         live);
    orderly = !loop.abandoned();
  } catch (const std::exception& error) {
    report_end(options, reason_of(error, options));
    outcome.exit_code = exit_code_of(error);
    for (int rank = 0; rank < transport.size(); ++rank)
      transport.send(rank, encode(Message{.kind = MessageKind::leave}));
  }
  directory.reset();  // everything is written, so the next incarnation may start while ranks say goodbye
  std::fflush(nullptr);
  transport.leave(orderly, outcome.exit_code);
  return outcome;
}

}  // namespace

std::string resume_line(const RunOptions& options) {
  return resume_line(options.directory, options.store);
}

std::vector<std::string> rank_arguments(const RunOptions& options) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return fmt::format("{}s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
  };
  std::vector<std::string> arguments{"resume", core::as_operand(options.directory.string())};
  const auto add = [&arguments](const char* word, const std::string& value) {
    arguments.insert(arguments.end(), {word, value});
  };
  if (!options.store.empty()) add("--store", core::as_operand(options.store));
  add("--store-limit", std::to_string(options.store_limit_bytes));
  add("--threads", std::to_string(threads_of(options)));
  if (options.task_memory_bytes) add("--task-memory", std::to_string(*options.task_memory_bytes));
  add("--task-time", seconds(options.task_time));
  add("--start-time", seconds(options.start_time));
  if (options.drain_after) add("--stop-after", seconds(*options.drain_after));
  if (options.retry_failed) arguments.emplace_back("--retry-failed");
  return arguments;
}

bool is_follower() {
  return launched_rank().value_or(0) > 0;
}

RunOutcome run_job(const RunOptions& options, const std::string& serialized_job, Zygote& zygote,
                   const RunHooks& hooks) try {
  block_drain_signal();
  const bool rank = !options.in_process && launched_rank();
  if (rank && is_follower()) return run_follower(options, zygote);
  std::optional<serve::LiveServer> live;
  if (options.serve) {
    live.emplace(*options.serve);
    claim_directory(options, serialized_job);
    live->start(options.directory);
  }
  serve::LiveServer* const live_server = live ? &*live : nullptr;
  if (rank) return run_leader(options, serialized_job, zygote, hooks, live_server);
  const RankCount count = rank_count(options.ranks);
  const Launcher launcher = options.srun ? srun_launcher(threads_of(options)) : mpi_launcher();
  if (!options.in_process && count.ranks > 1 && !launcher.path)
    print_message("{} is not installed: running in this process with {} workers\n", launcher.name, count.ranks);
  const int threads = threads_of(options);
  const std::string with_threads = threads == 1 ? "" : fmt::format(", with {} threads each", threads);
  if (options.in_process || count.ranks == 1 || !launcher.path) {
    if (threads > 1) print_message("{} {}{}\n", count.ranks, core::plural(count.ranks, "worker"), with_threads);
    return run_in_process(options, serialized_job, count.ranks, zygote, hooks, live_server);
  }
  // A problem with the directory is reported here, in one line, before any rank starts.
  claim_directory(options, serialized_job);
  print_message("{} ranks ({}){}\n", count.ranks, count.why, with_threads);
  RunOutcome outcome;
  outcome.state = RunOutcome::State::delegated;
  outcome.exit_code = supervise({.directory = options.directory,
                                 .resume = resume_line(options),
                                 .launcher = launcher,
                                 .ranks = count.ranks,
                                 .rank_arguments = rank_arguments(options),
                                 .start_time = options.start_time + 2 * kFollowerGrace,
                                 .declare_failed =
                                     [&options](int exit_code, const std::string& reason) {
                                       io::RunDirectory directory = resume_run(options);
                                       declare_failed(directory, exit_code, reason);
                                     },
                                 .poll =
                                     [live_server] {
                                       if (live_server != nullptr) live_server->poll();
                                     }});
  return outcome;
} catch (const core::IoError& error) {
  throw FailedRun(error, options);
}

}  // namespace manyworlds::farm
