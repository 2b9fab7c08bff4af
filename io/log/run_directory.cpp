#include "io/log/run_directory.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::io {

namespace fs = std::filesystem;
using core::InputError;
using core::IoError;

namespace {

constexpr const char* kSerializedSweep = "sweep.resolved.json";
constexpr const char* kBuild = "build.json";
constexpr const char* kStatus = "status.json";
constexpr const char* kComplete = "complete.json";
constexpr const char* kResults = "results.h5";
constexpr const char* kLock = "lock";
constexpr std::chrono::milliseconds kLockPollInterval{10}, kLiveHolderTimeout{50}, kProbeTimeout{2'000};
constexpr const char* kJournal = "journal";
constexpr std::uint64_t kMaxStatusBytes = std::uint64_t{8} << 20;  // size limit of status.json and its like

std::optional<std::string> read_if_exists(const fs::path& path, std::uint64_t max_bytes) {
  try {
    return read_file(path, max_bytes);
  } catch (const IoError& error) {
    if (error.code == ENOENT || error.code == ENOTDIR) return {};
    throw;
  }
}

/// Returns whether an error is due to the path: one that the user chose badly is bad input, a failing disk is not.
bool is_path_error(int code) {
  for (const int path_error : {EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, EEXIST, ELOOP, ENAMETOOLONG})
    if (code == path_error) return true;
  return false;
}

/// Returns a text member of a JSON object, or "" if there is none.
std::string text_of(const std::string& json, const char* member) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  const bool existing = object.is_object() && object.contains(member) && object[member].is_string();
  return existing ? object[member].get<std::string>() : "";
}

std::string describe_holder(const std::string& contents) {
  const std::string host = text_of(contents, "host"), pid = text_of(contents, "pid"), job = text_of(contents, "job");
  if (host.empty()) return "another process";  // the holder has the lock but has not yet written its name
  return job.empty() ? fmt::format("process {} on {}", pid, host)
                     : fmt::format("process {} on {} (job {})", pid, host, job);
}

/// Returns false if the process named in the lock file has died. The current holder then only tests the lock, for a
/// moment; on a busy machine that may take a while.
bool holder_may_live(const std::string& contents) {
  const std::string host = text_of(contents, "host"), pid = text_of(contents, "pid");
  if (host.empty() || host != host_name()) return !host.empty();
  pid_t process = 0;
  std::from_chars(pid.data(), pid.data() + pid.size(), process);
  return process > 0 && (::kill(process, 0) == 0 || errno == EPERM);
}

File take_lock(const fs::path& directory, const std::string& job) {
  File lock(directory / kLock, O_RDWR | O_CREAT | O_NOFOLLOW, Access::by_folder);
  for (std::chrono::milliseconds waited{0}; !lock.try_lock(); waited += kLockPollInterval) {
    const std::string holder = read_file(lock.path(), kMaxStatusBytes);
    if (waited >= (holder_may_live(holder) ? kLiveHolderTimeout : kProbeTimeout))
      throw InputError(fmt::format("{} is in use by {}; wait until it ends, or give another directory",
                                   directory.string(), describe_holder(holder)));
    std::this_thread::sleep_for(kLockPollInterval);
  }
  const nlohmann::json holder = {{"host", host_name()}, {"pid", std::to_string(::getpid())}, {"job", job}};
  lock.truncate(0);
  lock.write_at(0, holder.dump() + "\n");
  return lock;
}

/// Returns whether a folder holds nothing but what an incarnation leaves that ended before it wrote the serialized
/// sweep.
bool looks_fresh(const fs::path& path) {
  for (const std::string& name : list_directory(path))
    if (name != kLock && name != kBuild && name != kJournal && !name.ends_with(kTemporarySuffix)) return false;
  return true;
}

void remove_if_exists(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw IoError("remove", path.string());
}

void write_build(const fs::path& directory, const std::string& fingerprint) {
  write_atomically(directory / kBuild, nlohmann::json{{"fingerprint", fingerprint}}.dump() + "\n", Access::by_folder);
}

/// Removes the temporaries of killed incarnations; only the holder of the lock writes these files.
void remove_leftovers(const fs::path& directory) {
  for (const std::string& name : list_directory(directory))
    for (const char* const file : {kSerializedSweep, kBuild, kStatus, kComplete, kResults})
      if (name.starts_with(std::string(file) + ".") && name.ends_with(kTemporarySuffix))
        remove_if_exists(directory / name);
}

}  // namespace

RunDirectory RunDirectory::open(const fs::path& path, const Options& options) {
  make_private_directories(path);
  if (!is_run_directory(path) && !looks_fresh(path))
    throw InputError(fmt::format("{} is not empty and is not a run directory; give a new directory", path.string()));
  RunDirectory run{path, take_lock(path, options.job)};
  remove_leftovers(path);
  return run;
}

void RunDirectory::check_build(const Options& options) {
  const std::string recorded_build = read_build(path_);
  if (recorded_build == options.fingerprint) return;
  if (!options.rebuild)
    throw InputError(
        fmt::format("{} was begun by another build ({}; this is {}); give a new directory, or --rebuild "
                    "to compute it again with this one",
                    path_.string(), recorded_build.empty() ? "unknown" : recorded_build, options.fingerprint));
  // Journal files name their build themselves; the other files must be removed before the directory names this build.
  remove_if_exists(path_ / kComplete);
  remove_if_exists(path_ / kResults);
  write_build(path_, options.fingerprint);
}

RunDirectory RunDirectory::begin(const fs::path& path, std::string_view serialized_sweep, const Options& options) try {
  RunDirectory run = open(path, options);
  if (const auto existing = read_if_exists(serialized_sweep_path(path), kMaxFileBytes)) {
    if (*existing != serialized_sweep)
      throw InputError(fmt::format("{} holds a run of another sweep; give a new directory (-o)", path.string()));
    run.check_build(options);
    run.continued_ = true;
  } else {
    // The serialized sweep is written last: where it exists, everything else does.
    write_build(path, options.fingerprint);
    make_directory_like_its_parent(run.journal());
    write_atomically(serialized_sweep_path(path), serialized_sweep, Access::by_folder);
  }
  make_directory_like_its_parent(run.journal());
  run.serialized_sweep_ = serialized_sweep;
  return run;
} catch (const IoError& error) {
  if (is_path_error(error.code)) throw InputError(error.what());
  throw;
}

RunDirectory RunDirectory::resume(const fs::path& path, const Options& options) {
  const std::string serialized = read_serialized_sweep(path);
  return begin(path, serialized, options);
}

fs::path RunDirectory::journal() const {
  return journal_path(path_);
}

fs::path RunDirectory::results() const {
  return path_ / kResults;
}

void RunDirectory::write_status(std::string_view json) {
  write_atomically(path_ / kStatus, json, Access::by_folder);
}
void RunDirectory::write_complete(std::string_view json) {
  write_atomically(path_ / kComplete, json, Access::by_folder);
}

void RunDirectory::clear_status() {
  remove_if_exists(path_ / kStatus);
}

void RunDirectory::clear_complete() {
  remove_if_exists(path_ / kComplete);
  sync_directory(path_);
}

std::string read_serialized_sweep(const fs::path& run_directory) {
  if (auto serialized = read_if_exists(serialized_sweep_path(run_directory), kMaxFileBytes)) return *serialized;
  throw InputError(fmt::format("{} is not a run directory: it has no {}", run_directory.string(), kSerializedSweep));
}

std::string read_build(const fs::path& run_directory) {
  return text_of(read_if_exists(run_directory / kBuild, kMaxStatusBytes).value_or(""), "fingerprint");
}

std::optional<std::string> read_status(const fs::path& run_directory) {
  if (!is_run_directory(run_directory)) read_serialized_sweep(run_directory);  // throws the error
  return read_if_exists(run_directory / kStatus, kMaxStatusBytes);
}

std::optional<std::string> read_complete(const fs::path& run_directory) {
  if (!is_run_directory(run_directory)) read_serialized_sweep(run_directory);
  return read_if_exists(run_directory / kComplete, kMaxStatusBytes);
}

bool is_in_use(const fs::path& run_directory) {
  std::error_code ignored;
  if (!fs::exists(run_directory / kLock, ignored)) return false;
  const File lock(run_directory / kLock, O_RDONLY);
  return ::flock(lock.descriptor(), LOCK_SH | LOCK_NB) != 0;
}

fs::path serialized_sweep_path(const fs::path& run_directory) {
  return run_directory / kSerializedSweep;
}

bool is_run_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(serialized_sweep_path(path), ignored);
}

fs::path journal_path(const fs::path& run_directory) {
  return run_directory / kJournal;
}

namespace {

/// Returns "; runs in it are a, b" for a folder that contains runs, and "" for any other.
std::string runs_inside(const fs::path& folder) {
  constexpr std::size_t kMaxListed = 5;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && names.size() <= kMaxListed;
       at.increment(error))
    if (is_run_directory(at->path())) names.push_back(at->path().string());
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  const bool more = names.size() > kMaxListed;
  names.resize(std::min(names.size(), kMaxListed));
  return fmt::format("; runs in it are {}{}", fmt::join(names, ", "), more ? ", …" : "");
}

}  // namespace

bool has_results(const fs::path& run_directory) {
  std::error_code error;
  return fs::exists(run_directory / kResults, error);
}

fs::path results_path(const fs::path& run) {
  std::error_code error;
  if (fs::is_directory(run, error)) {
    if (has_results(run)) return run / kResults;
    if (is_run_directory(run))
      throw InputError(
          fmt::format("{0} has no {1} yet; `manyworlds status {0}` tells whether it runs, and what resumes it",
                      run.string(), kResults));
    const std::string runs = runs_inside(run);
    throw InputError(fmt::format("{} has no {}{}", run.string(), kResults, runs.empty() ? " yet" : runs));
  }
  if (!fs::exists(run, error)) throw InputError(fmt::format("{}: no such run directory or results file", run.string()));
  return run;
}

}  // namespace manyworlds::io
