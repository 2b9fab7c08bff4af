// The journal of one run: what was computed, on disk before it is counted. A directory with one record file for each
// process life that wrote; replaying them in name order gives the first result of every key, however often it was
// computed and wherever a life ended.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/log/keyed_payload.hpp"
#include "io/log/record_log.hpp"

namespace manyworlds::io {

/// The other kind of record in a journal, beside kResultRecord. A failure counts for as long as there is no result
/// under its key.
inline constexpr std::uint32_t kFailureRecord = 2;  // payload: the failure's class, a line feed, the reason

class Journal {
 public:
  /// Begins the file of this process life; it sorts behind those of earlier lives. Throws IoError.
  Journal(const std::filesystem::path& directory, std::string_view fingerprint, SyncRule rule = {},
          RecordWriter::Clock clock = std::chrono::steady_clock::now);

  /// `kind` is kResultRecord or kFailureRecord; `payload` of a result is the result alone. Repeating a key is harmless.
  /// Throws IoError; nothing is written then.
  void append(std::uint32_t kind, const core::sharing::Key& key, std::string_view payload);
  void sync_if_due() { writer_->sync_if_due(); }  // for event loops, when nothing is appended for a while
  void flush() { writer_->flush(); }
  const std::string& path() const { return writer_->path(); }

 private:
  std::unique_ptr<RecordWriter> writer_;
};

struct JournalReplay {
  struct Damage {
    std::string path;
    Skipped skipped;
    Misfits misfits;
  };
  std::uint64_t files = 0;
  std::uint64_t records = 0;            // that the visitor took
  std::uint64_t failures = 0;           // of these: failures
  std::uint64_t repeated = 0;           // records of a (kind, key) that came before
  std::uint64_t other_build_files = 0;  // left unread: their keys mean nothing to this build
  std::vector<Damage> damage;
  /// Lines that name each damaged or unfinished file, for stderr; empty when nothing was skipped or refused.
  std::string describe_damage() const;
};

/// Visits the first record of every (kind, key) in the order of writing, and then, of each key that has no result, the
/// last failure. The payload of a result is the result alone. `visit` says whether it takes what the record holds: one
/// that it refuses, or whose payload is not its key's, is named as damage and does not count, so that a later one of
/// its key is visited. Throws IoError.
JournalReplay replay_journal(const std::filesystem::path& directory, std::string_view fingerprint,
                             const std::function<bool(const Record&)>& visit);

}  // namespace manyworlds::io
