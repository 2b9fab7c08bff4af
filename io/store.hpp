// The store: network results that outlive a run, in segment files that any number of processes share. Every process
// writes segments of its own and reads those that were there when it opened the store, so nobody waits for anybody.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/record_log.hpp"

namespace manyworlds::io {

class Store {
 public:
  /// Opens (and makes, where missing) the part of `directory` that belongs to the build. Throws IoError.
  Store(const std::filesystem::path& directory, std::string_view fingerprint, SyncRule rule = {});

  /// The bytes put under `key`, or nothing. A different key with the same first digest is a collision and throws
  /// InternalError. A damaged record is as good as absent; damaged() counts them.
  std::optional<std::string> get(const core::sharing::Key& key);
  /// Keeps `bytes` unless the key is there already. Throws IoError; the store remains usable for reading then.
  void put(const core::sharing::Key& key, std::string_view bytes);
  void sync_if_due();
  void flush();

  std::size_t size() const { return index_.size(); }                     // keys
  std::size_t segments() const { return segments_.size(); }              // files, ours included
  std::uint64_t damaged() const { return damaged_; }                     // stretches and records that could not be read
  const std::filesystem::path& directory() const { return directory_; }  // of this build's segments

 private:
  struct Entry {
    std::array<std::uint64_t, 2> check;
    std::uint64_t length;
    std::uint32_t segment;
    std::uint64_t offset;
  };
  struct DigestHash {
    std::size_t operator()(const std::array<std::uint64_t, 2>& digest) const { return digest[0]; }
  };

  void index_segment(const std::filesystem::path& path);
  const Entry* find(const core::sharing::Key& key) const;
  RecordReader& reader_of(std::uint32_t segment);
  void begin_own_segment();

  std::filesystem::path directory_;
  std::string fingerprint_;
  SyncRule rule_;
  std::vector<std::filesystem::path> segments_;
  std::vector<std::unique_ptr<RecordReader>> readers_;  // beside segments_; opened by the first get()
  int open_readers_ = 0;
  std::unordered_map<std::array<std::uint64_t, 2>, Entry, DigestHash> index_;
  std::unique_ptr<RecordWriter> writer_;  // of our own segment, from the first put on
  std::uint32_t own_segment_ = 0;
  std::uint64_t damaged_ = 0;
};

/// $XDG_CACHE_HOME/manyworlds, or ~/.cache/manyworlds. Throws InputError where neither can be told.
std::filesystem::path default_store_directory();

/// What `--store` asks for: "none" is no store, "" the default directory.
std::unique_ptr<Store> open_store(const std::string& choice, std::string_view fingerprint);

}  // namespace manyworlds::io
