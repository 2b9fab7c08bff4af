// The directory of a run: the serialized sweep that defines what is computed, the journal, and the outputs. A run is
// begun once and may be resumed any number of times, by one process at a time and by one build.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/log/file.hpp"

namespace manyworlds::io {

class RunDirectory {
 public:
  struct Options {
    std::string fingerprint;  // of this build
    std::string job;          // the batch system's job id; "" outside of a job
    bool rebuild = false;     // take over a run that another build began
  };

  /// Creates `path` for this sweep, accessible to its owner only, or resumes the run there if it has the same sweep.
  /// Whoever may enter the directory may read its files. Throws InputError when the directory holds another sweep, was
  /// begun by another build (unless `rebuild`, which discards what that build computed), is in use, is not a run
  /// directory, or cannot be created or written.
  static RunDirectory begin(const std::filesystem::path& path, std::string_view serialized_sweep,
                            const Options& options);
  /// Resumes the run in `path`. Throws like begin().
  static RunDirectory resume(const std::filesystem::path& path, const Options& options);

  const std::string& serialized_sweep() const { return serialized_sweep_; }
  bool continued() const { return continued_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal() const;
  std::filesystem::path results() const;

  void write_status(std::string_view json);
  /// Records that this incarnation of the run has ended and how; nothing is written after it.
  void write_complete(std::string_view json);
  void clear_complete();
  void clear_status();

 private:
  RunDirectory(std::filesystem::path path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static RunDirectory open(const std::filesystem::path& path, const Options& options);
  void check_build(const Options& options);

  std::filesystem::path path_;
  File lock_;
  std::string serialized_sweep_;
  bool continued_ = false;
};

/// Read access without the lock. The results are empty where the run has not got that far. Throw InputError for a
/// directory that is not a run directory, IoError for a file that cannot be read.
std::string read_serialized_sweep(const std::filesystem::path& run_directory);
std::string read_build(const std::filesystem::path& run_directory);  // the fingerprint; "" if unknown
std::optional<std::string> read_status(const std::filesystem::path& run_directory);
std::optional<std::string> read_complete(const std::filesystem::path& run_directory);
/// Returns whether a process holds the run's lock; also a process on another host if the file system supports that.
bool is_in_use(const std::filesystem::path& run_directory);

/// The path of a run directory's serialized sweep, and whether it exists, that is, whether a run was begun there.
std::filesystem::path serialized_sweep_path(const std::filesystem::path& run_directory);
bool is_run_directory(const std::filesystem::path& path);

/// Returns the path of a run directory's journal.
std::filesystem::path journal_path(const std::filesystem::path& run_directory);

/// Returns whether a run directory has a results file yet.
bool has_results(const std::filesystem::path& run_directory);

/// Returns the results file that RUN on a command line denotes: the file itself, or the one in a run directory.
std::filesystem::path results_path(const std::filesystem::path& run);

}  // namespace manyworlds::io
