// The journal of one run: every result is on disk before it counts. It is a directory with one record file for each
// incarnation of the process that wrote; replaying the files in the order of their names yields the first result of
// every key, however often it was computed and wherever an incarnation ended.
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

/// The second kind of record in a journal, beside kResultRecord. A failure counts until there is a result under its
/// key.
inline constexpr std::uint32_t kFailureRecord = 2;  // payload: the failure's class, a line feed, the reason

class Journal {
 public:
  /// Creates the file of this incarnation, which sorts after the files of earlier ones. Throws IoError.
  Journal(const std::filesystem::path& directory, std::string_view fingerprint, SyncPolicy policy = {},
          RecordWriter::Clock clock = std::chrono::steady_clock::now);

  /// Appends a record; `kind` is kResultRecord or kFailureRecord, and the `payload` of a result is the result alone.
  /// Repeating a key is harmless. Throws IoError; nothing is written then.
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
    SkippedRegions skipped;
    InvalidRecords invalid_records;
  };
  std::uint64_t files = 0;
  std::uint64_t records = 0;            // records that the visitor accepted
  std::uint64_t failures = 0;           // the failures among `records`
  std::uint64_t repeated = 0;           // records whose (kind, key) came before
  std::uint64_t other_build_files = 0;  // not read: another build's keys mean nothing to this one
  std::vector<Damage> damage;
  /// Returns lines for stderr that name each damaged or unfinished file; empty when nothing was skipped or rejected.
  std::string describe_damage() const;
};

/// Visits the first record of every (kind, key) in the order of writing, then the last failure of each key that has no
/// result. The payload of a visited result is the result alone. `visit` returns whether it accepts the record. A record
/// that it rejects, or whose payload does not belong to its key, is reported as damage and does not count, so that a
/// later record of the same key is visited. Throws IoError.
JournalReplay replay_journal(const std::filesystem::path& directory, std::string_view fingerprint,
                             const std::function<bool(const Record&)>& visit);

}  // namespace manyworlds::io
