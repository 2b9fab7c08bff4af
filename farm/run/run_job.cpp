#include "farm/run/run_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/transport_in_process.hpp"
#include "farm/protocol/transport_mpi.hpp"
#include "farm/run/ledger.hpp"
#include "farm/run/start_watch.hpp"
#include "farm/run/supervisor.hpp"
#include "farm/serve/live_server.hpp"
#include "farm/status/progress.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/launcher.hpp"
#include "farm/system/processors.hpp"
#include "farm/system/talk.hpp"
#include "farm/worker/rank_loop.hpp"

namespace manyworlds::farm {

namespace {

constexpr std::chrono::seconds kFollowersLater{5};  // than the coordinating rank they give up a start

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const core::InputError*>(&error) != nullptr) return kExitInput;
  if (dynamic_cast<const core::IoError*>(&error) != nullptr) return kExitIo;
  return kExitInternal;
}

/// What an error ends a run with. Nothing finished is lost when a disk fails, so that message says how to go on.
std::string reason_of(const std::exception& error, const RunOptions& options) {
  const auto* failure = dynamic_cast<const core::IoError*>(&error);
  if (failure == nullptr) return error.what();
  const bool full = failure->code == ENOSPC || failure->code == EDQUOT;
  const bool begun = io::is_run_directory(options.directory);
  return fmt::format("{}; {}, then {}", failure->what(), full ? "make room" : "mend that",
                     begun ? fmt::format("`{}` goes on", resume_line(options)) : "give the same line again");
}

class FailedRun final : public core::IoError {
 public:
  FailedRun(const core::IoError& error, const RunOptions& options)
      : core::IoError(error), reason_(reason_of(error, options)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

LoopOptions loop_options(const RunOptions& options, int workers, bool launched) {
  const TaskLimits limits{options.task_memory_bytes.value_or(memory_share_bytes(workers)), options.task_time};
  return {.worker = {},
          .watch_parent = launched,
          .drain_on_ctrl_c = !launched,
          .limits = limits,
          .drain_after = options.drain_after};
}

/// Throws what the run ends with where no worker can serve it.
void check_served(const Coordinator& coordinator, std::int64_t now_ms) {
  const auto unserved = coordinator.unserved(now_ms);
  if (!unserved) return;
  const std::string what = fmt::format("no worker can serve this run: {}", unserved->reason);
  if (unserved->out_of_memory) throw core::InputError(what + "; give them more, or run fewer at a time (-j)");
  throw core::InternalError(what);
}

/// The coordinating process: everything between planning and complete.json.
RunOutcome coordinate(const RunOptions& options, io::RunDirectory& directory, const std::string& frozen, int ranks,
                      Zygote& zygote, const RunHooks& hooks, Transport& transport, RankLoop& loop, ProgressLine* line,
                      serve::LiveServer* live) try {
  const std::unique_ptr<Job> job = zygote.kind().plan(frozen);
  return_freed_memory();  // planning takes much that is not kept
  Schedule schedule(job->tasks());
  Ledger ledger(options, directory, ranks, *job, schedule, hooks);
  try {
    Coordinator coordinator(schedule, transport, *job);
    const auto each_second = [&] {
      const auto& status =
          ledger.each_second(coordinator.draining() ? "draining" : "running", coordinator.loads(loop.now_ms()));
      if (live != nullptr) live->look();
      if (line != nullptr) line->draw(progress_line(status));
    };
    if (!schedule.complete()) {
      loop.coordinate(coordinator, each_second);
      loop.run();
    } else {
      coordinator.dismiss();
    }
    if (line != nullptr) line->clear();
    if (!schedule.complete()) check_served(coordinator, loop.now_ms());
    return ledger.close(!schedule.complete());
  } catch (const std::exception&) {
    if (line != nullptr) line->clear();
    throw;
  }
} catch (const std::exception& error) {
  declare_failed(directory, exit_code_of(error), reason_of(error, options));
  throw;
}

/// The run's directory, held by this process from now on, with nothing in it that says that the run is over.
io::RunDirectory take_up(const RunOptions& options, const std::string& frozen) {
  io::RunDirectory directory = begin_run(options, frozen);
  directory.clear_complete();
  return directory;
}

RunOutcome run_in_process(const RunOptions& options, const std::string& frozen, int ranks, Zygote& zygote,
                          const RunHooks& hooks, serve::LiveServer* live) {
  io::RunDirectory directory = take_up(options, frozen);
  InProcessNetwork network(ranks);
  RankLoop loop(zygote, loop_options(options, ranks, false));
  for (int rank = 0; rank < ranks; ++rank) loop.add_worker(network.party(rank));
  ProgressLine line;
  return coordinate(options, directory, frozen, ranks, zygote, hooks, network.party(0), loop, &line, live);
}

/// Whether this rank was started by a supervisor, which talks to people and knows the run's end from complete.json.
bool is_supervised() {
  return std::getenv(kSupervised) != nullptr;
}

/// Where the run's end is known from complete.json and not from mpirun, dead ranks need not hold it up.
MpiPatience patience() {
  constexpr double kSupervised_s = 5;
  if (!is_supervised()) return {};
  return {.silence_s = kSupervised_s, .least_s = kSupervised_s};
}

/// False only where the file system says that nobody coordinates this run any more.
bool may_be_coordinated(const RunOptions& options) {
  try {
    return io::is_in_use(options.directory);
  } catch (const core::IoError&) {
    return true;
  }
}

/// A follower whose run has ended without a word writes down why, unless somebody did, or lives to do it.
void declare_abandoned(const RunOptions& options, const std::string& why) {
  if (is_supervised()) return;
  tell("manyworlds: {}\n", why);
  try {
    if (!io::is_run_directory(options.directory) || io::read_complete(options.directory)) return;
    io::RunDirectory directory = resume_run(options);
    declare_failed(directory, kExitInternal, why);
  } catch (const std::exception&) {  // the coordinating rank has the directory, and will say why itself
  }
}

RunOutcome run_follower(const RunOptions& options, Zygote& zygote) {
  const std::string go_on = fmt::format("`{}` goes on", resume_line(options));
  // Later than the coordinating rank, which knows more.
  auto watch = std::make_unique<StartWatch>(options.start_time + kFollowersLater, [&](const std::string& why) {
    declare_abandoned(options, fmt::format("{}; {}", why, go_on));
    return kExitInternal;
  });
  MpiTransport transport(patience());
  watch.reset();
  bool abandoned = false;
  {
    LoopOptions loop_words = loop_options(options, ranks_on_this_machine(transport.size()), true);
    loop_words.coordinated = [&options] { return may_be_coordinated(options); };
    RankLoop loop(zygote, loop_words);
    loop.add_worker(transport);
    loop.run();
    abandoned = loop.abandoned();
  }
  if (abandoned) declare_abandoned(options, fmt::format("the coordinating rank died; {}", go_on));
  RunOutcome outcome;
  outcome.state = RunOutcome::State::elsewhere;
  transport.leave(!abandoned, kExitDone);
  return outcome;
}

/// What a coordinating rank ends with: complete.json says it to a supervisor, stderr to whoever else started it.
void say_end(const RunOptions& options, const std::string& reason) {
  if (!is_supervised() || !io::read_complete(options.directory)) tell("manyworlds: {}\n", reason);
}

RunOutcome run_leader(const RunOptions& options, const std::string& frozen, Zygote& zygote, const RunHooks& hooks,
                      serve::LiveServer* live) {
  // The directory is held before MPI starts: whoever waits for this run sees that it is coordinated. What is wrong with
  // it waits until the other ranks can be told.
  std::optional<io::RunDirectory> directory;
  std::exception_ptr fault;
  try {
    directory.emplace(take_up(options, frozen));
  } catch (const std::exception&) {
    fault = std::current_exception();
  }
  auto watch = std::make_unique<StartWatch>(options.start_time, [&](const std::string& why) {
    const std::string reason = fmt::format("{}; `{}` goes on", why, resume_line(options));
    if (directory) declare_failed(*directory, kExitInternal, reason);
    say_end(options, reason);
    return kExitInternal;
  });
  MpiTransport transport(patience());
  watch.reset();
  RunOutcome outcome;
  bool orderly = false;
  try {
    if (fault) std::rethrow_exception(fault);
    RankLoop loop(zygote, loop_options(options, ranks_on_this_machine(transport.size()), true));
    loop.add_worker(transport);
    outcome = coordinate(options, *directory, frozen, transport.size(), zygote, hooks, transport, loop, nullptr, live);
    orderly = !loop.abandoned();
  } catch (const std::exception& error) {
    say_end(options, reason_of(error, options));
    outcome.exit_code = exit_code_of(error);
    for (int rank = 0; rank < transport.size(); ++rank)
      transport.send(rank, encode(Message{.kind = MessageKind::leave}));
  }
  directory.reset();  // what is written is written: the next life may begin while ranks part
  std::fflush(nullptr);
  transport.leave(orderly, outcome.exit_code);
  return outcome;
}

}  // namespace

std::string resume_line(const RunOptions& options) {
  return resume_line(options.directory, options.store);
}

std::vector<std::string> rank_words(const RunOptions& options) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return fmt::format("{}s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
  };
  std::vector<std::string> words{"resume", core::as_operand(options.directory.string())};
  const auto add = [&words](const char* word, const std::string& value) { words.insert(words.end(), {word, value}); };
  if (!options.store.empty()) add("--store", core::as_operand(options.store));
  add("--store-limit", std::to_string(options.store_limit_bytes));
  if (options.task_memory_bytes) add("--task-memory", std::to_string(*options.task_memory_bytes));
  add("--task-time", seconds(options.task_time));
  add("--start-time", seconds(options.start_time));
  if (options.drain_after) add("--stop-after", seconds(*options.drain_after));
  if (options.retry_failed) words.emplace_back("--retry-failed");
  return words;
}

bool is_follower() {
  return launched_rank().value_or(0) > 0;
}

RunOutcome run_job(const RunOptions& options, const std::string& frozen, Zygote& zygote, const RunHooks& hooks) try {
  hold_drain_signal();
  const bool rank = !options.in_process && launched_rank();
  if (rank && is_follower()) return run_follower(options, zygote);
  std::optional<serve::LiveServer> live;
  if (options.serve) {
    live.emplace(*options.serve);
    take_up(options, frozen);
    live->start(options.directory);
  }
  serve::LiveServer* const watched = live ? &*live : nullptr;
  if (rank) return run_leader(options, frozen, zygote, hooks, watched);
  const RankCount count = rank_count(options.ranks);
  const Launcher launcher = options.srun ? srun_launcher() : mpi_launcher();
  if (!options.in_process && count.ranks > 1 && !launcher.path)
    tell("{} is not installed: running in this process with {} workers\n", launcher.name, count.ranks);
  if (options.in_process || count.ranks == 1 || !launcher.path)
    return run_in_process(options, frozen, count.ranks, zygote, hooks, watched);
  // Whatever is wrong with the directory is said here, in one line, before a rank starts.
  take_up(options, frozen);
  tell("{} ranks ({})\n", count.ranks, count.why);
  RunOutcome outcome;
  outcome.state = RunOutcome::State::elsewhere;
  outcome.exit_code = supervise({.directory = options.directory,
                                 .resume = resume_line(options),
                                 .launcher = launcher,
                                 .ranks = count.ranks,
                                 .rank_words = rank_words(options),
                                 .start_time = options.start_time + 2 * kFollowersLater,
                                 .declare_failed =
                                     [&options](int exit_code, const std::string& reason) {
                                       io::RunDirectory directory = resume_run(options);
                                       declare_failed(directory, exit_code, reason);
                                     },
                                 .look =
                                     [watched] {
                                       if (watched != nullptr) watched->look();
                                     }});
  return outcome;
} catch (const core::IoError& error) {
  throw FailedRun(error, options);
}

}  // namespace manyworlds::farm
