// The store: network results that outlive a run, in segment files that any number of processes share. Every process
// writes its own segments and reads what others had written when it looked last, so no process waits for another. The
// store is a cache: a record that cannot be read, or was evicted meanwhile, counts as absent.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/log/keyed_payload.hpp"
#include "io/log/record_log.hpp"

namespace manyworlds::io {

struct StoreOptions {
  SyncPolicy sync;
  /// A segment of at least this size gets no more records: eviction removes whole segments, so they should be small.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
};

class Store {
 public:
  /// Opens the subdirectory of `directory` that belongs to this build, and creates it if it is missing. A read-only
  /// directory provides what it holds. Throws IoError.
  Store(const std::filesystem::path& directory, std::string_view fingerprint, StoreOptions options = {});

  /// Decides whether bytes are a valid result for their key.
  using Validator = std::function<bool(std::string_view)>;
  /// Returns the bytes stored under `key`, or nothing. A record counts as absent if it cannot be read, if its payload
  /// does not belong to its key, if `is_valid` rejects it, or if another key has the same first digest. Records that
  /// exist but are wrong are counted by damaged() and listed by invalid_records().
  std::optional<std::string> get(const core::sharing::Key& key, const Validator& is_valid = {});
  /// Stores `bytes` unless the key exists. Throws IoError; the store remains usable for reading then.
  void put(const core::sharing::Key& key, std::string_view bytes);
  /// Looks for what other processes have stored meanwhile. Throws IoError if the directory cannot be listed.
  void refresh();
  void sync_if_due();
  void flush();
  /// Calls flush() and marks the segments that were read from as used now. A later put() begins a new segment.
  void close();

  std::size_t size() const { return index_.size(); }         // records
  std::size_t segments() const { return segments_.size(); }  // files, including our own
  /// Returns about how large all segments were when they were looked at last.
  std::uint64_t bytes() const;
  std::uint64_t damaged() const { return damaged_; }  // places whose checksums or contents do not match
  const std::map<std::string, InvalidRecords>& invalid_records() const { return invalid_records_; }  // by path
  const std::filesystem::path& directory() const { return directory_; }  // of this build's segments

 private:
  struct Segment {
    std::filesystem::path path;
    std::unique_ptr<RecordReader> reader;  // opened by the first get()
    std::optional<std::chrono::steady_clock::time_point> last_touched;
    std::uint64_t indexed = 0;  // offset up to which its records are in the index
    std::uint64_t bytes = 0;    // of its file when it was indexed; of our own, when it has ended
  };
  struct Entry {
    std::array<std::uint64_t, 2> check;
    std::uint64_t length;
    std::uint32_t segment;
    std::uint64_t offset;
    bool matches(const core::sharing::Key& key) const { return check == key.check && length == key.length; }
  };
  struct DigestHash {
    std::size_t operator()(const std::array<std::uint64_t, 2>& digest) const { return digest[0]; }
  };

  void index_segment(std::uint32_t number);
  using Index = std::unordered_multimap<std::array<std::uint64_t, 2>, Entry, DigestHash>;
  bool has(const core::sharing::Key& key) const;
  void reject(const Entry& entry, const core::sharing::Key& key, std::string_view reason);
  std::optional<Record> read(const Entry& entry);
  RecordReader& reader_of(std::uint32_t segment);
  void touch(Segment& segment);
  void begin_own_segment();
  void end_own_segment();

  std::filesystem::path directory_;
  std::string fingerprint_;
  StoreOptions options_;
  std::vector<Segment> segments_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of segments, by path
  int open_readers_ = 0;
  Index index_;  // may hold a result twice, from concurrent runs: if one record is lost, the other serves
  std::unique_ptr<RecordWriter> writer_;  // of our own segment, from the first put() on
  std::uint32_t own_segment_ = 0;
  std::uint64_t own_bytes_ = 0;
  int next_own_number_ = 0;  // of the next segment; no name is reused, even if its file was evicted
  std::uint64_t damaged_ = 0;
  std::map<std::string, InvalidRecords> invalid_records_;
};

/// Suffix of the segments' file names.
inline constexpr std::string_view kSegmentSuffix = ".segment";

/// Returns $XDG_CACHE_HOME/manyworlds or ~/.cache/manyworlds. Throws InputError if neither variable is set.
std::filesystem::path default_store_directory();

/// Returns the directory that the value of `--store` names; "" is the default directory.
std::filesystem::path store_directory(const std::string& choice);

/// Returns where a store keeps components of flows, in a store of their own: simulators read and write them.
std::filesystem::path components_directory(const std::filesystem::path& store);
/// How much that may hold when a run ends, whatever the store's limit, and half of what it may hold meanwhile: every
/// simulator has an index of it, a fiftieth as large.
inline constexpr std::uint64_t kMaxComponentBytes = std::uint64_t{512} << 20;

}  // namespace manyworlds::io
