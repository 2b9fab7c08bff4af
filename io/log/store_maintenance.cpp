#include "io/log/store_maintenance.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "io/log/store.hpp"

namespace manyworlds::io {

namespace fs = std::filesystem;
using core::IoError;

namespace {

constexpr const char* kPruneLock = "prune.lock";
constexpr std::uint64_t kComponentsShare = 8;             // of a limit, results have the rest
constexpr std::time_t kPresumedActive_s = 3600;           // on file systems without locks
constexpr std::uint64_t kMaxHeaderBytes = 16 + 4096 + 8;  // of a record file

struct SegmentFile {
  fs::path path;
  std::uint64_t bytes = 0;
  timespec last_used{};  // modification time of the file, which both writing and reading set
  bool operator<(const SegmentFile& other) const {
    if (last_used.tv_sec != other.last_used.tv_sec) return last_used.tv_sec < other.last_used.tv_sec;
    return last_used.tv_nsec != other.last_used.tv_nsec ? last_used.tv_nsec < other.last_used.tv_nsec
                                                        : path < other.path;
  }
};

bool vanished(int code) {
  return code == ENOENT || code == ENOTDIR || code == ESTALE;
}

/// Returns the segments of all builds, least recently used first, without those that disappear meanwhile.
std::vector<SegmentFile> list_segments(const fs::path& directory) {
  std::vector<SegmentFile> files;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return files;
  for (const std::string& build : list_directory(directory)) {
    if (!fs::is_directory(directory / build, ignored)) continue;
    for (const std::string& name : list_directory(directory / build)) {
      struct stat status {};
      const fs::path path = directory / build / name;
      if (!name.ends_with(kSegmentSuffix) || ::stat(path.c_str(), &status) != 0) continue;
      files.push_back({path, static_cast<std::uint64_t>(status.st_size), status.st_mtim});
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Serializes pruning, so that two processes do not both free the same space. Without a lock (no lock support,
/// read-only store) pruning proceeds: then too much may be evicted, and nothing worse happens.
std::optional<File> lock_for_pruning(const fs::path& directory) {
  try {
    File lock(directory / kPruneLock, O_RDWR | O_CREAT | O_NOFOLLOW, Access::by_folder);
    while (::flock(lock.descriptor(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return lock;
  } catch (const IoError&) {
    return {};
  }
}

bool writer_is_alive(File& file, const SegmentFile& segment) {
  try {
    return !file.try_lock();
  } catch (const IoError&) {
    return ::time(nullptr) - segment.last_used.tv_sec < kPresumedActive_s;
  }
}

/// Opens for writing, which locks need on some file systems, or for reading if the file belongs to another user.
File open_for_lock(const fs::path& path) {
  try {
    return {path, O_RDWR};
  } catch (const IoError& error) {
    if (error.code != EACCES && error.code != EPERM) throw;
    return {path, O_RDONLY};
  }
}

enum class Removal { removed, unremovable, vanished };

Removal remove_segment(const SegmentFile& segment) {
  try {
    File file = open_for_lock(segment.path);
    if (writer_is_alive(file, segment)) return Removal::unremovable;
    if (::unlink(segment.path.c_str()) != 0) throw IoError("remove", segment.path.string());
    return Removal::removed;
  } catch (const IoError& error) {
    if (vanished(error.code)) return Removal::vanished;
    if (error.code == EACCES || error.code == EPERM || error.code == EROFS) return Removal::unremovable;
    throw;
  }
}

/// Returns whether the file ends before its first record could begin, so that no build can use it, now or later.
bool is_unusable(const SegmentFile& segment) {
  if (segment.bytes > kMaxHeaderBytes) return false;
  try {
    return !RecordReader(segment.path).readable();
  } catch (const IoError&) {
    return false;
  } catch (const core::InputError&) {  // another format version, which other builds can read
    return false;
  }
}

}  // namespace

std::vector<StoredBuild> stored_builds(const fs::path& directory) {
  std::map<std::string, StoredBuild> builds;
  for (const SegmentFile& file : list_segments(directory)) {
    try {
      RecordReader reader(file.path);
      StoredBuild& build = builds[reader.fingerprint()];
      while (reader.next_header()) ++build.records;
      build.fingerprint = reader.fingerprint();
      ++build.segments;
      build.bytes += file.bytes;
      build.last_used = std::max(build.last_used, file.last_used.tv_sec);
    } catch (const IoError& error) {
      if (!vanished(error.code)) throw;
    } catch (const core::InputError&) {
      StoredBuild& build = builds[""];
      ++build.segments;
      build.bytes += file.bytes;
      build.last_used = std::max(build.last_used, file.last_used.tv_sec);
    }
  }
  std::vector<StoredBuild> all;
  for (auto& [fingerprint, build] : builds) all.push_back(std::move(build));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.last_used > b.last_used; });
  return all;
}

StoreCheck verify_store(const fs::path& directory, std::string_view fingerprint) {
  StoreCheck check;
  for (const SegmentFile& file : list_segments(directory)) {
    try {
      RecordReader reader(file.path);
      ++check.segments;
      check.bytes += file.bytes;
      const bool ours = reader.fingerprint() == fingerprint;
      InvalidRecords invalid_records;
      while (const auto record = reader.next()) {
        if (ours && record->kind == kResultRecord && !verified_result(record->payload, record->key))
          invalid_records.add(reader.last_offset(), record->key, kChangedContent);
        else
          ++check.records;
      }
      if (reader.skipped().damaged() > 0 || invalid_records.count > 0)
        check.damaged.push_back({file.path.string(), reader.skipped(), std::move(invalid_records), ""});
      else if (reader.skipped().torn)
        check.torn.push_back({file.path.string(), reader.skipped(), {}, ""});
    } catch (const IoError& error) {
      if (!vanished(error.code)) check.damaged.push_back({file.path.string(), {}, {}, error.what()});
    } catch (const core::InputError&) {  // another format version, which this build cannot check
    }
  }
  return check;
}

PruneResult prune_store(const fs::path& directory, std::uint64_t limit_bytes) {
  PruneResult pruned;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return pruned;
  const auto pruning_lock = lock_for_pruning(directory);
  const std::vector<SegmentFile> files = list_segments(directory);
  pruned.kept_segments = files.size();
  for (const SegmentFile& file : files) pruned.kept_bytes += file.bytes;
  for (const SegmentFile& file : files) {
    const bool unusable = is_unusable(file);
    if (!unusable && pruned.kept_bytes <= limit_bytes) continue;
    const Removal removal = remove_segment(file);
    if (removal == Removal::unremovable) {
      pruned.unremovable += unusable ? 0 : 1;
      continue;
    }
    --pruned.kept_segments;
    pruned.kept_bytes -= file.bytes;
    if (removal == Removal::vanished) continue;
    unusable ? ++pruned.unusable : ++pruned.segments;
    pruned.bytes += file.bytes;
  }
  return pruned;
}

PrunedStore prune_with_components(const fs::path& directory, std::uint64_t limit_bytes) {
  PrunedStore pruned;
  pruned.components =
      prune_store(components_directory(directory), std::min(limit_bytes / kComponentsShare, kMaxComponentBytes));
  pruned.results = prune_store(directory, limit_bytes - std::min(limit_bytes, pruned.components.kept_bytes));
  return pruned;
}

}  // namespace manyworlds::io
