// Append-only files of checksummed records, the format of the journal and the store; docs/formats.md specifies every
// byte. A reader returns the intact records and reports what it skipped; it never returns a record that was not
// written.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharing/key.hpp"
#include "io/log/file.hpp"

namespace manyworlds::io {

/// Maximum payload length: a longer one in a header means damage, so a reader needs no more memory than this.
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 28;

struct Record {
  std::uint32_t kind = 0;
  core::sharing::Key key;
  std::string payload;
  bool operator==(const Record&) const = default;
};

/// A record whose header is valid; its payload has not been read.
struct RecordHeader {
  std::uint64_t offset = 0;
  std::uint32_t kind = 0;
  core::sharing::Key key;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;
};

/// The regions of a file that hold no intact record.
struct SkippedRegions {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_offset = 0;  // of the first region
  /// Length and offset of the unfinished record (or file header) at the end, included above: its writer died, or is
  /// writing now.
  std::uint64_t torn_bytes = 0, torn_offset = 0;
  bool torn = false;  // also true for an empty file
  void add(std::uint64_t offset, std::uint64_t size, bool is_torn = false);
  /// Returns the number of regions other than the torn tail: bytes that were changed after they were written.
  std::uint64_t damaged() const { return count - (torn ? 1 : 0); }
  /// Returns "FILE: what was skipped and where": a line for damage and one for a torn tail; empty if nothing was
  /// skipped.
  std::string describe(const std::string& path) const;
};

class RecordReader {
 public:
  /// Opens a file at its present length; later appends of another process are not seen. Throws IoError, and InputError
  /// for a valid header of another format version. A damaged header makes the whole file one skipped region.
  explicit RecordReader(const std::filesystem::path& path);

  bool readable() const { return readable_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the build that wrote the file
  std::optional<Record> next();
  /// Like next(), but neither reads nor checks the payload: for indexes.
  std::optional<RecordHeader> next_header();
  /// Returns where the record after the last that next() or next_header() returned begins, and lets them go on there.
  std::uint64_t next_offset() const { return position_; }
  void go_on_at(std::uint64_t offset) { position_ = offset; }
  /// Returns the record that begins at `offset`, or nothing if it is not intact. Does not affect next().
  std::optional<Record> read(std::uint64_t offset);
  std::uint64_t last_offset() const { return last_offset_; }  // offset of the record that next() returned last
  const SkippedRegions& skipped() const { return skipped_; }

 private:
  std::string_view buffered(std::uint64_t offset);
  void read_file_header();
  std::optional<RecordHeader> header_at(std::uint64_t offset);
  std::optional<Record> payload_of(const RecordHeader& header);
  std::uint64_t find_header(std::uint64_t from);
  bool is_torn_at(std::uint64_t offset);

  File file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0, last_offset_ = 0;
  bool readable_ = false;
  std::string fingerprint_;
  SkippedRegions skipped_;
  std::vector<char> buffer_;  // bytes of the file from buffer_begin_ on
  std::uint64_t buffer_begin_ = 0;
};

/// When appended records are forced to the disk: at whichever limit is reached first.
struct SyncPolicy {
  std::chrono::milliseconds interval{1000};
  std::uint64_t records = 100;
};

class RecordWriter {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// Creates the file, which must not exist: a file has one writer ever. Throws IoError.
  RecordWriter(const std::filesystem::path& path, std::string_view fingerprint, SyncPolicy policy = {},
               Clock clock = std::chrono::steady_clock::now);
  /// Syncs if possible; call flush() to see failures.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Hands the record to the operating system (it survives the death of this process, not a power loss) and syncs when
  /// that is due. After an IoError the file is as before the call, and the append may be retried. Returns the record's
  /// offset.
  std::uint64_t append(std::uint32_t kind, const core::sharing::Key& key, std::string_view payload);
  void sync_if_due();  // for event loops that stay idle longer than the sync interval
  void flush();
  /// Locks the file until the process ends, so that nobody deletes it while its writer lives. Returns false when the
  /// file is deleted already. Has no effect on file systems without locks.
  bool lock_for_lifetime();
  std::uint64_t unsynced() const { return unsynced_; }  // records that a power loss may still destroy
  const std::string& path() const { return file_.path(); }

 private:
  void write_all_or_nothing(std::string_view bytes);

  File file_;
  SyncPolicy policy_;
  Clock clock_;
  std::uint64_t size_ = 0;
  std::uint64_t unsynced_ = 0;
  std::chrono::steady_clock::time_point oldest_unsynced_;
};

}  // namespace manyworlds::io
