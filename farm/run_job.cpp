#include "farm/run_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/error.hpp"
#include "farm/coordinator.hpp"
#include "farm/exit_code.hpp"
#include "farm/launcher.hpp"
#include "farm/ledger.hpp"
#include "farm/processors.hpp"
#include "farm/progress.hpp"
#include "farm/rank_loop.hpp"
#include "farm/serve/live_server.hpp"
#include "farm/supervisor.hpp"
#include "farm/transport_in_process.hpp"
#include "farm/transport_mpi.hpp"

namespace manyworlds::farm {

namespace {

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

/// The coordinating process: everything between the first look into the run directory and complete.json.
RunOutcome coordinate(const RunOptions& options, const std::string& frozen, int ranks, Zygote& zygote,
                      const RunHooks& hooks, Transport& transport, RankLoop& loop, ProgressLine* line,
                      serve::LiveServer* live) {
  const std::unique_ptr<Job> job = zygote.kind().plan(frozen);
  return_freed_memory();  // planning takes much that is not kept
  Schedule schedule(job->tasks());
  Ledger ledger(options, frozen, ranks, *job, schedule, hooks);
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
    if (const auto reason = coordinator.unserved(loop.now_ms()); !schedule.complete() && !reason.empty())
      throw core::InternalError(fmt::format("no worker can serve this run: {}", reason));
    return ledger.close(!schedule.complete());
  } catch (const std::exception& error) {
    if (line != nullptr) line->clear();
    ledger.close_failed(exit_code_of(error), reason_of(error, options));
    throw;
  }
}

RunOutcome run_in_process(const RunOptions& options, const std::string& frozen, int ranks, Zygote& zygote,
                          const RunHooks& hooks, serve::LiveServer* live) {
  InProcessNetwork network(ranks);
  RankLoop loop(zygote, loop_options(options, ranks, false));
  for (int rank = 0; rank < ranks; ++rank) loop.add_worker(network.party(rank));
  ProgressLine line;
  return coordinate(options, frozen, ranks, zygote, hooks, network.party(0), loop, &line, live);
}

/// A supervisor has the run's end from complete.json and not from mpirun: dead ranks need not hold it up.
MpiPatience patience() {
  constexpr double kSupervised_s = 5;
  if (std::getenv(kSupervised) == nullptr) return {};
  return {.silence_s = kSupervised_s, .least_s = kSupervised_s};
}

RunOutcome run_follower(const RunOptions& options, Zygote& zygote) {
  MpiTransport transport(patience());
  bool abandoned = false;
  {
    RankLoop loop(zygote, loop_options(options, ranks_on_this_machine(transport.size()), true));
    loop.add_worker(transport);
    loop.run();
    abandoned = loop.abandoned();
  }
  RunOutcome outcome;
  outcome.state = RunOutcome::State::elsewhere;
  transport.leave(!abandoned, kExitDone);
  return outcome;
}

/// Whether the supervisor of this rank finds in complete.json why the run ended. What goes wrong before there is a
/// ledger is written there now.
bool supervisor_knows(const RunOptions& options, const std::string& frozen, const std::exception& error) {
  if (std::getenv(kSupervised) == nullptr) return false;
  if (io::read_complete(options.directory)) return true;
  try {
    io::RunDirectory directory = begin_run(options, frozen);
    return declare_failed(directory, exit_code_of(error), reason_of(error, options));
  } catch (const std::exception&) {
    return false;
  }
}

RunOutcome run_leader(const RunOptions& options, const std::string& frozen, Zygote& zygote, const RunHooks& hooks,
                      serve::LiveServer* live) {
  MpiTransport transport(patience());
  RunOutcome outcome;
  bool orderly = false;
  try {
    RankLoop loop(zygote, loop_options(options, ranks_on_this_machine(transport.size()), true));
    loop.add_worker(transport);
    outcome = coordinate(options, frozen, transport.size(), zygote, hooks, transport, loop, nullptr, live);
    orderly = !loop.abandoned();
  } catch (const std::exception& error) {
    if (!supervisor_knows(options, frozen, error)) fmt::print(stderr, "manyworlds: {}\n", reason_of(error, options));
    outcome.exit_code = exit_code_of(error);
    for (int rank = 0; rank < transport.size(); ++rank)
      transport.send(rank, encode(Message{.kind = MessageKind::leave}));
  }
  std::fflush(nullptr);
  transport.leave(orderly, outcome.exit_code);
  return outcome;
}

}  // namespace

std::string resume_line(const RunOptions& options) {
  // -j is left out: the next life may have another machine.
  return fmt::format("manyworlds resume {}{}", options.directory.string(),
                     options.store.empty() ? "" : " --store " + options.store);
}

std::vector<std::string> rank_words(const RunOptions& options) {
  const auto seconds = [](std::chrono::milliseconds time) {
    return fmt::format("{}s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
  };
  std::vector<std::string> words{"resume", options.directory.string()};
  const auto add = [&words](const char* word, const std::string& value) { words.insert(words.end(), {word, value}); };
  if (!options.store.empty()) add("--store", options.store);
  add("--store-limit", std::to_string(options.store_limit_bytes));
  if (options.task_memory_bytes) add("--task-memory", std::to_string(*options.task_memory_bytes));
  add("--task-time", seconds(options.task_time));
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
    begin_run(options, frozen).clear_complete();
    live->start(options.directory);
  }
  serve::LiveServer* const watched = live ? &*live : nullptr;
  if (rank) return run_leader(options, frozen, zygote, hooks, watched);
  const RankCount count = rank_count(options.ranks);
  const bool launcher = find_launcher().has_value();
  if (!options.in_process && count.ranks > 1 && !launcher)
    fmt::print(stderr, "{} is not installed: running in this process with {} workers\n", launcher_name(), count.ranks);
  if (options.in_process || count.ranks == 1 || !launcher)
    return run_in_process(options, frozen, count.ranks, zygote, hooks, watched);
  // Whatever is wrong with the directory is said here, in one line, before a rank starts.
  begin_run(options, frozen).clear_complete();
  fmt::print(stderr, "{} ranks ({})\n", count.ranks, count.why);
  RunOutcome outcome;
  outcome.state = RunOutcome::State::elsewhere;
  outcome.exit_code = supervise({options.directory, resume_line(options), count.ranks, rank_words(options), [watched] {
                                   if (watched != nullptr) watched->look();
                                 }});
  return outcome;
} catch (const core::IoError& error) {
  throw FailedRun(error, options);
}

}  // namespace manyworlds::farm
