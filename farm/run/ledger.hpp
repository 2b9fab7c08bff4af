// Everything a run leaves on disk while it runs: the journal and the store, status.json, and complete.json at its end.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "farm/run/run_job.hpp"
#include "farm/run/run_store.hpp"
#include "farm/status/progress.hpp"
#include "io/log/journal.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {

/// The directory of this run, begun or gone on with. Throws as io::RunDirectory::begin().
io::RunDirectory begin_run(const RunOptions& options, const std::string& frozen);
/// The same of a run that must be there already.
io::RunDirectory resume_run(const RunOptions& options);

class Ledger {
 public:
  /// Settles in `schedule` what the journal and the store know, and from then on writes down whatever settles in the
  /// run that `directory` holds. The directory and all other arguments must outlive the ledger. Throws InputError and
  /// IoError.
  Ledger(const RunOptions& options, io::RunDirectory& directory, int ranks, Job& job, Schedule& schedule,
         const RunHooks& hooks);

  /// Once a second: syncs what is due and writes status.json every other time. Returns the status.
  const nlohmann::json& each_second(const std::string& state, const std::vector<WorkerLoad>& loads);

  /// The run is over, or `drained`: the results of what is settled, then complete.json.
  RunOutcome close(bool drained);

  RunFigures figures() const;

 private:
  std::vector<std::pair<std::uint32_t, Outcome>> replay(const std::string& fingerprint);
  void look_in_store();
  void settled(std::uint32_t task, const Outcome& outcome);
  void write_in_journal(std::uint32_t task, const Outcome& outcome);
  void write_results();
  void write_status(const std::string& state);
  double elapsed_s() const;

  enum class Source : std::uint8_t { journal, store, computed };

  Job& job_;
  Schedule& schedule_;
  const RunHooks& hooks_;
  int ranks_;
  io::RunDirectory& directory_;
  std::string resume_line_, store_choice_;
  std::unique_ptr<io::Journal> journal_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<Progress> progress_;
  Source source_ = Source::journal;
  RunFigures figures_;
  std::vector<std::string> kinds_;
  nlohmann::json status_;
  std::chrono::steady_clock::time_point begin_, status_written_, results_due_;
};

/// A run ended by an error, told to whoever waits for complete.json; false where that cannot be written.
bool declare_failed(io::RunDirectory& directory, int exit_code, const std::string& reason) noexcept;

}  // namespace manyworlds::farm
