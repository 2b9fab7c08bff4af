// The recorder writes everything that a run leaves on disk while it runs: the journal, the store, status.json, and
// complete.json at its end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "farm/run/run_job.hpp"
#include "farm/run/run_store.hpp"
#include "farm/status/progress.hpp"
#include "io/log/journal.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {

/// Creates the directory of this run, or opens it to continue. Throws as io::RunDirectory::begin().
io::RunDirectory begin_run(const RunOptions& options, const std::string& serialized_job);
/// Opens the directory of a run that must already exist.
io::RunDirectory resume_run(const RunOptions& options);

class RunRecorder {
 public:
  /// Settles in `queue` the tasks whose outcomes the journal and the store contain, and from then on records every task
  /// that settles in the run of `directory`. All arguments must outlive this object. Throws core::InputError and
  /// core::IoError.
  RunRecorder(const RunOptions& options, io::RunDirectory& directory, int ranks, Job& job, TaskQueue& queue,
              const RunHooks& hooks);

  /// To be called once a second: syncs files that are due and writes status.json every two seconds. Returns the status.
  const nlohmann::json& each_second(const std::string& state, const std::vector<WorkerLoad>& loads);

  /// Ends the run, complete or `drained`: writes the results of the settled tasks, then complete.json.
  RunOutcome close(bool drained);

  RunStatistics statistics() const;

 private:
  enum class Source : std::uint8_t { journal, store, other_task, computed };

  std::vector<std::pair<std::uint32_t, Outcome>> replay(const std::string& fingerprint);
  void settle_from_store();
  std::optional<Outcome> find_in_store(std::uint32_t task);
  Source source_of(std::uint32_t task) const;
  void settled(std::uint32_t task, const Outcome& outcome);
  void record(std::uint32_t task, const Outcome& outcome);
  void append_to_journal(std::uint32_t task, const Outcome& outcome);
  void write_results();
  void write_status(const std::string& state);
  double elapsed_s() const;

  Job& job_;
  TaskQueue& queue_;
  const RunHooks& hooks_;
  int ranks_;
  io::RunDirectory& directory_;
  std::string resume_line_, absolute_store_;
  std::unique_ptr<io::Journal> journal_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<Progress> progress_;
  Source source_ = Source::journal;
  std::optional<std::uint32_t> replayed_;       // the task whose result was read from the journal last
  std::vector<std::uint32_t> known_in_replay_;  // tasks that settled meanwhile as others with their key
  std::set<std::uint32_t> in_store_;            // tasks whose results were found there
  RunStatistics statistics_;
  std::vector<std::string> kinds_;
  nlohmann::json status_;
  std::chrono::steady_clock::time_point begin_, status_written_, results_due_;
};

/// Records in complete.json that an error ended the run. Returns false if that file cannot be written.
bool declare_failed(io::RunDirectory& directory, int exit_code, const std::string& reason) noexcept;

}  // namespace manyworlds::farm
