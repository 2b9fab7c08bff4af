// Runs a job to its end in a run directory on the requested number of ranks, in this process, as a supervisor of
// mpirun, or as one of its ranks. Writes all results.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "farm/coordinator/task_queue.hpp"
#include "farm/http/address.hpp"
#include "farm/protocol/job.hpp"
#include "farm/protocol/outcome.hpp"
#include "farm/status/resume_line.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

struct RunOptions {
  std::filesystem::path directory;
  std::optional<int> ranks;    // -j; by default rank_count() decides
  std::optional<int> threads;  // of a simulator; by default threads_per_rank() decides
  bool in_process = false;     // without mpirun, but still with a process per simulating worker
  bool srun = false;           // Slurm's srun starts the ranks instead of mpirun
  std::string store = "none";  // a directory, "" for the default one, or "none"
  std::uint64_t store_limit_bytes = std::uint64_t{20} << 30;  // maximum size of the store at the end of the run
  bool rebuild = false;                                       // take over a directory that another build began
  bool retry_failed = false;                                  // recompute tasks that failed in earlier incarnations
  std::optional<std::uint64_t> task_memory_bytes;             // 0: no limit; default: memory_share_bytes()
  std::chrono::milliseconds task_time{0};                     // wall-clock limit per task; 0: no limit
  std::chrono::milliseconds start_time{60'000};               // time limit for the ranks to find each other
  std::optional<serve::Address> serve;                        // address of the live page
  std::optional<std::chrono::milliseconds> drain_after;       // time after which the run drains, to be resumed
};

/// Returns the command that resumes this run.
std::string resume_line(const RunOptions& options);

/// Returns the arguments of a rank of this run, after the program's name. The rank resumes the run directory that its
/// supervisor has begun.
std::vector<std::string> rank_arguments(const RunOptions& options);

/// Statistics of a finished run, for the /provenance group of the results.
struct RunStatistics {
  int ranks = 1;
  double elapsed_s = 0;    // time of this incarnation of the run
  double simulated_s = 0;  // summed over simulators
  std::uint64_t from_journal = 0, from_store = 0, computed = 0;
};

struct RunHooks {
  /// Returns what decides which tasks are computed; null: all are.
  std::function<std::unique_ptr<Selection>(const Job&, int ranks)> selection;
  /// Returns the name of each task's kind, for the progress display.
  std::function<std::vector<std::string>(const Job&)> kinds;
  /// Called after each settled task, which is in the journal by then.
  std::function<void(std::uint32_t task, const Outcome&)> on_result;
  /// Returns further members of status.json as an object.
  std::function<nlohmann::json(const TaskQueue&)> extra_status;
  /// Describes a task for people: the experiments that need it and their configuration.
  std::function<nlohmann::json(const Job&, std::uint32_t task)> describe;
  /// Writes the results: when every task is settled, before the run is declared complete, and from time to time before
  /// that, with the results so far.
  std::function<void(Job&, const TaskQueue&, const RunStatistics&)> write_results;
};

struct RunOutcome {
  enum class State : std::uint8_t {
    complete,
    drained,    // stopped on request; the same command line continues
    delegated,  // this process was a rank or a supervisor; another process has written the results
  } state = State::complete;
  std::uint64_t total = 0, done = 0, failed = 0;
  int exit_code = 0;
};

/// Runs the job `serialized_job`, which JobKind::plan of the zygote parses; only rank 0 needs it, the others may pass
/// "". Throws core::InputError, core::IoError and core::InternalError as its parts do. In a rank it may end the process
/// instead of returning, when other ranks have died and MPI cannot be finalized.
RunOutcome run_job(const RunOptions& options, const std::string& serialized_job, Zygote& zygote, const RunHooks& hooks);

/// Returns true in a process that mpirun or srun started as a rank other than 0: it needs no sweep of its own.
bool is_follower();

}  // namespace manyworlds::farm
