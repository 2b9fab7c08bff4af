// The directory a run lives in: the frozen sweep that says what it computes, the journal, and what it leaves. It may be
// begun once and gone on with any number of times, by one process at a time and by one build.
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
    std::string job;          // the batch system's id, "" outside of one
    bool rebuild = false;     // take over what another build began
  };

  /// Creates `path`, which its owner alone may enter then, for this sweep, or goes on with it when it holds the same
  /// one. Its files are for those who may enter it. Throws InputError when it holds
  /// another sweep, was begun by another build (unless rebuild: then what that build computed is dropped), is in use,
  /// is no run directory, or cannot be made or written.
  static RunDirectory begin(const std::filesystem::path& path, std::string_view frozen_sweep, const Options& options);
  /// Goes on with what is there. Throws as begin().
  static RunDirectory resume(const std::filesystem::path& path, const Options& options);

  const std::string& frozen_sweep() const { return frozen_sweep_; }
  bool continued() const { return continued_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal() const;
  std::filesystem::path results() const;

  void write_status(std::string_view json);
  /// Says that this life of the run is over and how; nothing is written after it.
  void write_complete(std::string_view json);
  void clear_complete();
  void clear_status();

 private:
  RunDirectory(std::filesystem::path path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  static RunDirectory open(const std::filesystem::path& path, const Options& options);
  void check_build(const Options& options);

  std::filesystem::path path_;
  File lock_;
  std::string frozen_sweep_;
  bool continued_ = false;
};

/// For those who only look; none of it needs the lock. Empty where the run has not got that far. Throw InputError for
/// a directory that is none of ours, IoError for a file that cannot be read.
std::string read_frozen_sweep(const std::filesystem::path& run_directory);
std::string read_build(const std::filesystem::path& run_directory);  // the fingerprint; "" where it is not known
std::optional<std::string> read_status(const std::filesystem::path& run_directory);
std::optional<std::string> read_complete(const std::filesystem::path& run_directory);
/// Whether a process holds the run's lock; as far as the file system tells, also one of another host.
bool is_in_use(const std::filesystem::path& run_directory);

/// Where a run directory has its frozen sweep, and whether it has: whether a run was begun there.
std::filesystem::path frozen_sweep_of(const std::filesystem::path& run_directory);
bool is_run_directory(const std::filesystem::path& path);

/// Where a run directory has its journal.
std::filesystem::path journal_of(const std::filesystem::path& run_directory);

/// The results file that RUN means on a command line: itself, or the one in a run directory.
std::filesystem::path results_of(const std::filesystem::path& run);

}  // namespace manyworlds::io
