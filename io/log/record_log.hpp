// Append-only files of checksummed records, the format of journal and store; docs/formats.md has every byte of it.
// A reader gives the records that are whole and says what it skipped; it never gives one that was not written.
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

/// Longest payload: a reader that meets a longer one knows that it reads damage, and needs no more memory than this.
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 28;

struct Record {
  std::uint32_t kind = 0;
  core::sharing::Key key;
  std::string payload;
  bool operator==(const Record&) const = default;
};

/// A record whose header is whole; its payload has not been read.
struct RecordPlace {
  std::uint64_t offset = 0;
  std::uint32_t kind = 0;
  core::sharing::Key key;
  std::uint64_t payload_bytes = 0;
  std::uint64_t payload_checksum = 0;
};

/// Stretches of a file that hold no whole record.
struct Skipped {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_offset = 0;  // of the first stretch
  /// Of these, the bytes of the unfinished record (or file header) at the end: its writer died over it, or writes now.
  std::uint64_t torn_bytes = 0, torn_offset = 0;
  bool torn = false;  // also of a file that ends before its first byte
  void add(std::uint64_t offset, std::uint64_t size, bool is_torn = false);
  /// Stretches that are no torn tail: bytes that somebody changed.
  std::uint64_t damaged() const { return count - (torn ? 1 : 0); }
  /// "FILE: what was skipped and where", in a line for damage and one for a torn tail; empty where nothing was.
  std::string describe(const std::string& path) const;
};

class RecordReader {
 public:
  /// Reads the bytes the file has now; what another process appends later is not seen. Throws IoError, and InputError
  /// for a whole header of another format version. A damaged header makes the whole file one skipped stretch.
  explicit RecordReader(const std::filesystem::path& path);

  bool readable() const { return readable_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the build that wrote the file
  std::optional<Record> next();
  /// As next(), but the payload is neither read nor checked: for indexes.
  std::optional<RecordPlace> next_place();
  /// The record that begins at `offset`, or nothing where it is not whole. Does not move next().
  std::optional<Record> read(std::uint64_t offset);
  std::uint64_t last_offset() const { return last_offset_; }  // where the record begins that next() gave last
  const Skipped& skipped() const { return skipped_; }

 private:
  std::string_view view(std::uint64_t offset);
  void read_file_header();
  std::optional<RecordPlace> header_at(std::uint64_t offset);
  std::optional<Record> payload_of(const RecordPlace& place);
  std::uint64_t find_header(std::uint64_t from);
  bool torn_at(std::uint64_t offset);

  File file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0, last_offset_ = 0;
  bool readable_ = false;
  std::string fingerprint_;
  Skipped skipped_;
  std::vector<char> buffer_;  // bytes of the file from buffer_begin_ on
  std::uint64_t buffer_begin_ = 0;
};

/// When appended records are forced to the disk: whichever comes first.
struct SyncRule {
  std::chrono::milliseconds every{1000};
  std::uint64_t records = 100;
};

class RecordWriter {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// Creates the file, which must not exist: a file has one writer in its life. Throws IoError.
  RecordWriter(const std::filesystem::path& path, std::string_view fingerprint, SyncRule rule = {},
               Clock clock = std::chrono::steady_clock::now);
  /// Syncs as far as it can; call flush() to hear of failures.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Hands the record to the system (it survives our death, not the machine's) and syncs when that is due. After an
  /// IoError the file is as it was before the call, and appending may be tried again. Returns the record's offset.
  std::uint64_t append(std::uint32_t kind, const core::sharing::Key& key, std::string_view payload);
  void sync_if_due();  // for event loops that stay idle longer than the rule allows
  void flush();
  /// Tells those who would delete the file that its writer lives: until the process ends, however it ends. False when
  /// the file is deleted already. On file systems without locks it does nothing.
  bool hold();
  std::uint64_t unsynced() const { return unsynced_; }  // records that a power cut may still take
  const std::string& path() const { return file_.path(); }

 private:
  void write_whole(std::string_view bytes);

  File file_;
  SyncRule rule_;
  Clock clock_;
  std::uint64_t size_ = 0;
  std::uint64_t unsynced_ = 0;
  std::chrono::steady_clock::time_point oldest_unsynced_;
};

}  // namespace manyworlds::io
