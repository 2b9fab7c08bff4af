// Runs a job to its end in a run directory, on as many ranks as asked: in this process, as a supervisor of mpirun, or
// as one of its ranks; and writes down everything that came out of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "farm/coordinator/schedule.hpp"
#include "farm/http/address.hpp"
#include "farm/protocol/job.hpp"
#include "farm/protocol/outcome.hpp"
#include "farm/status/resume_line.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

struct RunOptions {
  std::filesystem::path directory;
  std::optional<int> ranks;    // -j; without it farm/system/processors.hpp decides
  bool in_process = false;     // no mpirun, though still a process for each simulating worker
  bool srun = false;           // Slurm's srun starts the ranks instead of mpirun
  std::string store = "none";  // a directory, "" for the default one, "none"
  std::uint64_t store_limit_bytes = std::uint64_t{20} << 30;  // what it may hold when the run ends
  bool rebuild = false;                                       // take over a directory that another build began
  bool retry_failed = false;                                  // compute again what failed in earlier lives
  std::optional<std::uint64_t> task_memory_bytes;             // 0: no limit; default: memory_share_bytes()
  std::chrono::milliseconds task_time{0};                     // on the clock, of one task; 0: no limit
  std::chrono::milliseconds start_time{60'000};               // that ranks may take to find each other
  std::optional<serve::Address> serve;                        // of a live page
  std::optional<std::chrono::milliseconds> drain_after;       // the run stops by itself, to be gone on with
};

/// The command that goes on with this run.
std::string resume_line(const RunOptions& options);

/// The words after the program's name that a rank of this run is started with: it goes on with the run directory, which
/// its supervisor has begun.
std::vector<std::string> rank_words(const RunOptions& options);

/// What a finished run was like, for /provenance.
struct RunFigures {
  int ranks = 1;
  double elapsed_s = 0;    // this life of the run
  double simulated_s = 0;  // summed over simulators
  std::uint64_t from_journal = 0, from_store = 0, computed = 0;
};

struct RunHooks {
  /// A name for the kind of each task, for progress.
  std::function<std::vector<std::string>(const Job&)> kinds;
  /// After each settled task, which is journalled by then.
  std::function<void(std::uint32_t task, const Outcome&)> on_result;
  /// What status.json says besides how far the run is, as an object of its members.
  std::function<nlohmann::json(const Schedule&)> told;
  /// What a task is to a person: the experiments that need it and their configuration.
  std::function<nlohmann::json(const Job&, std::uint32_t task)> describe;
  /// Writes the results: when every task is settled, before the run is declared complete; and now and then before,
  /// with what is there.
  std::function<void(Job&, const Schedule&, const RunFigures&)> write_results;
};

struct RunOutcome {
  enum class State : std::uint8_t {
    complete,
    drained,    // stopped on request: the same line goes on
    elsewhere,  // this process was a rank, or a supervisor: others have written what came out
  } state = State::complete;
  std::uint64_t total = 0, done = 0, failed = 0;
  int exit_code = 0;
};

/// `frozen` is the sweep as the zygote's factory takes it; of ranks only rank 0 needs it, from others it may be empty.
/// Throws InputError, IoError and InternalError as its parts do. In a rank it may end the process instead of
/// returning, when other ranks have died and MPI cannot be left in good order.
RunOutcome run_job(const RunOptions& options, const std::string& frozen, Zygote& zygote, const RunHooks& hooks);

/// True in a process that mpirun or srun started as a rank other than 0: it needs no sweep of its own.
bool is_follower();

}  // namespace manyworlds::farm
