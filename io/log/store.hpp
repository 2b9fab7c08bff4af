// The store: network results that outlive a run, in segment files that any number of processes share. Every process
// writes segments of its own and reads those that were there when it opened the store, so nobody waits for anybody.
// Nothing in it is ever needed: what cannot be read, or was evicted meanwhile, is as good as absent.
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
  SyncRule sync;
  /// A segment that has grown to this gets no more records: whole segments are evicted, so they should not be large.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
};

class Store {
 public:
  /// Opens (and makes, where missing) the part of `directory` that belongs to the build. A directory that can only be
  /// read gives what it holds. Throws IoError.
  Store(const std::filesystem::path& directory, std::string_view fingerprint, StoreOptions options = {});

  /// Whether bytes are what their key promises, to whoever knows what that is.
  using Holds = std::function<bool(std::string_view)>;
  /// The bytes put under `key`, or nothing. A record that cannot be read, whose payload is not its key's, or that
  /// `holds` refuses is as good as absent, and so is one of another key with the same first digest; those that are
  /// there but wrong are counted by damaged(), and named by misfits().
  std::optional<std::string> get(const core::sharing::Key& key, const Holds& holds = {});
  /// Keeps `bytes` unless the key is there already. Throws IoError; the store remains usable for reading then.
  void put(const core::sharing::Key& key, std::string_view bytes);
  void sync_if_due();
  void flush();
  /// flush(), and marks the segments that gave something as used now. Writing goes on in a new segment, if at all.
  void close();

  std::size_t size() const { return index_.size(); }         // records
  std::size_t segments() const { return segments_.size(); }  // files, ours included
  std::uint64_t damaged() const { return damaged_; }         // places whose checksums or contents do not fit
  const std::map<std::string, Misfits>& misfits() const { return misfits_; }  // by path
  const std::filesystem::path& directory() const { return directory_; }       // of this build's segments

 private:
  struct Segment {
    std::filesystem::path path;
    std::unique_ptr<RecordReader> reader;  // opened by the first get()
    std::optional<std::chrono::steady_clock::time_point> marked;
  };
  struct Entry {
    std::array<std::uint64_t, 2> check;
    std::uint64_t length;
    std::uint32_t segment;
    std::uint64_t offset;
    bool is_of(const core::sharing::Key& key) const { return check == key.check && length == key.length; }
  };
  struct DigestHash {
    std::size_t operator()(const std::array<std::uint64_t, 2>& digest) const { return digest[0]; }
  };

  void index_segment(const std::filesystem::path& path);
  using Index = std::unordered_multimap<std::array<std::uint64_t, 2>, Entry, DigestHash>;
  bool has(const core::sharing::Key& key) const;
  void refuse(const Entry& entry, const core::sharing::Key& key, std::string_view reason);
  std::optional<Record> read(const Entry& entry);
  RecordReader& reader_of(std::uint32_t segment);
  void mark(Segment& segment);
  void begin_own_segment();
  void end_own_segment();

  std::filesystem::path directory_;
  std::string fingerprint_;
  StoreOptions options_;
  std::vector<Segment> segments_;
  int open_readers_ = 0;
  Index index_;  // two runs at once may keep the same result: when one record is lost, the other serves
  std::unique_ptr<RecordWriter> writer_;  // of our own segment, from the first put on
  std::uint32_t own_segment_ = 0;
  std::uint64_t own_bytes_ = 0;
  int own_number_ = 0;  // of the next one; no name is taken twice, not even when its file is evicted by then
  std::uint64_t damaged_ = 0;
  std::map<std::string, Misfits> misfits_;
};

/// Ends the names of segments.
inline constexpr std::string_view kSegmentEnding = ".segment";

/// $XDG_CACHE_HOME/manyworlds, or ~/.cache/manyworlds. Throws InputError where neither can be told.
std::filesystem::path default_store_directory();

/// The directory that `--store` names: "" is the default one.
std::filesystem::path store_directory(const std::string& choice);
}  // namespace manyworlds::io
