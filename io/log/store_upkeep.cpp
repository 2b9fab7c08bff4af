#include "io/log/store_upkeep.hpp"

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
constexpr std::time_t kMayStillBeWritten_s = 3600;            // where there are no locks to tell
constexpr std::uint64_t kLongestHeaderBytes = 16 + 4096 + 8;  // of a record file

struct SegmentFile {
  fs::path path;
  std::uint64_t bytes = 0;
  timespec used{};  // its time of last modification: writing and being read both set it
  bool operator<(const SegmentFile& other) const {
    if (used.tv_sec != other.used.tv_sec) return used.tv_sec < other.used.tv_sec;
    return used.tv_nsec != other.used.tv_nsec ? used.tv_nsec < other.used.tv_nsec : path < other.path;
  }
};

bool gone(int code) {
  return code == ENOENT || code == ENOTDIR || code == ESTALE;
}

/// The segments of all builds, least recently used first. What goes away meanwhile is left out.
std::vector<SegmentFile> list_segments(const fs::path& directory) {
  std::vector<SegmentFile> files;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return files;
  for (const std::string& build : list_directory(directory)) {
    if (!fs::is_directory(directory / build, ignored)) continue;
    for (const std::string& name : list_directory(directory / build)) {
      struct stat status {};
      const fs::path path = directory / build / name;
      if (!name.ends_with(kSegmentEnding) || ::stat(path.c_str(), &status) != 0) continue;
      files.push_back({path, static_cast<std::uint64_t>(status.st_size), status.st_mtim});
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// One upkeep at a time, so that two do not both make the same room. Where locks or writing fail it does without:
/// then too much may go, and nothing else.
std::optional<File> wait_for_turn(const fs::path& directory) {
  try {
    File lock(directory / kPruneLock, O_RDWR | O_CREAT | O_NOFOLLOW, Access::by_folder);
    while (::flock(lock.descriptor(), LOCK_EX) != 0 && errno == EINTR) {
    }
    return lock;
  } catch (const IoError&) {
    return {};
  }
}

bool writer_lives(File& file, const SegmentFile& segment) {
  try {
    return !file.try_lock();
  } catch (const IoError&) {
    return ::time(nullptr) - segment.used.tv_sec < kMayStillBeWritten_s;
  }
}

/// For writing, which locks need on some file systems; for reading where the file is somebody else's.
File open_for_lock(const fs::path& path) {
  try {
    return {path, O_RDWR};
  } catch (const IoError& error) {
    if (error.code != EACCES && error.code != EPERM) throw;
    return {path, O_RDONLY};
  }
}

enum class Removal { removed, left, gone };

Removal remove_segment(const SegmentFile& segment) {
  try {
    File file = open_for_lock(segment.path);
    if (writer_lives(file, segment)) return Removal::left;
    if (::unlink(segment.path.c_str()) != 0) throw IoError("remove", segment.path.string());
    return Removal::removed;
  } catch (const IoError& error) {
    if (gone(error.code)) return Removal::gone;
    if (error.code == EACCES || error.code == EPERM || error.code == EROFS) return Removal::left;
    throw;
  }
}

/// Whether it ends before its first record could begin, so that no build can use it, now or later.
bool is_leftover(const SegmentFile& segment) {
  if (segment.bytes > kLongestHeaderBytes) return false;
  try {
    return !RecordReader(segment.path).readable();
  } catch (const IoError&) {
    return false;
  } catch (const core::InputError&) {  // of another version of the format: that one's builds read it
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
      while (reader.next_place()) ++build.records;
      build.fingerprint = reader.fingerprint();
      ++build.segments;
      build.bytes += file.bytes;
      build.last_used = std::max(build.last_used, file.used.tv_sec);
    } catch (const IoError& error) {
      if (!gone(error.code)) throw;
    } catch (const core::InputError&) {
      StoredBuild& build = builds[""];
      ++build.segments;
      build.bytes += file.bytes;
      build.last_used = std::max(build.last_used, file.used.tv_sec);
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
      Misfits misfits;
      while (const auto record = reader.next()) {
        if (ours && record->kind == kResultRecord && !result_in(record->payload, record->key))
          misfits.add(reader.last_offset(), record->key, kChangedContent);
        else
          ++check.records;
      }
      if (reader.skipped().damaged() > 0 || misfits.count > 0)
        check.damaged.push_back({file.path.string(), reader.skipped(), std::move(misfits), ""});
      else if (reader.skipped().torn)
        check.torn.push_back({file.path.string(), reader.skipped(), {}, ""});
    } catch (const IoError& error) {
      if (!gone(error.code)) check.damaged.push_back({file.path.string(), {}, {}, error.what()});
    } catch (const core::InputError&) {  // of another version of the format: not ours to judge
    }
  }
  return check;
}

Pruned prune_store(const fs::path& directory, std::uint64_t limit_bytes) {
  Pruned pruned;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) return pruned;
  const auto turn = wait_for_turn(directory);
  const std::vector<SegmentFile> files = list_segments(directory);
  pruned.kept_segments = files.size();
  for (const SegmentFile& file : files) pruned.kept_bytes += file.bytes;
  for (const SegmentFile& file : files) {
    const bool leftover = is_leftover(file);
    if (!leftover && pruned.kept_bytes <= limit_bytes) continue;
    const Removal removal = remove_segment(file);
    if (removal == Removal::left) {
      pruned.left += leftover ? 0 : 1;
      continue;
    }
    --pruned.kept_segments;
    pruned.kept_bytes -= file.bytes;
    if (removal == Removal::gone) continue;
    leftover ? ++pruned.leftovers : ++pruned.segments;
    pruned.bytes += file.bytes;
  }
  return pruned;
}

}  // namespace manyworlds::io
