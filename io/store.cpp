#include "io/store.hpp"

#include <unistd.h>

#include <cctype>
#include <cstdlib>

#include "core/error.hpp"

namespace manyworlds::io {

namespace fs = std::filesystem;
using core::sharing::Key;

namespace {

constexpr std::string_view kEnding = ".segment";
constexpr std::uint32_t kResult = 1;  // the only kind of record in a segment
constexpr int kMaxOpenReaders = 64;   // a store may have more segments than a process may have open files

/// One folder a build. The segments' headers have the last word on what build wrote them.
std::string folder_of(std::string_view fingerprint) {
  std::string name(fingerprint);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '-';
  return name.empty() ? "unnamed" : name;
}

}  // namespace

Store::Store(const fs::path& directory, std::string_view fingerprint, SyncRule rule)
    : directory_(directory / folder_of(fingerprint)), fingerprint_(fingerprint), rule_(rule) {
  make_directories(directory_);
  for (const std::string& name : list_directory(directory_))
    if (name.ends_with(kEnding)) index_segment(directory_ / name);
}

void Store::index_segment(const fs::path& path) {
  RecordReader reader(path);
  if (reader.readable() && reader.fingerprint() != fingerprint_) return;
  const auto segment = static_cast<std::uint32_t>(segments_.size());
  segments_.push_back(path);
  readers_.emplace_back();
  while (const auto place = reader.next_place())
    if (place->kind == kResult)
      index_.try_emplace(place->key.digest, Entry{place->key.check, place->key.length, segment, place->offset});
  damaged_ += reader.skipped().count;
}

const Store::Entry* Store::find(const Key& key) const {
  const auto found = index_.find(key.digest);
  if (found == index_.end()) return nullptr;
  const Entry& entry = found->second;
  MANYWORLDS_CHECK(entry.check == key.check && entry.length == key.length,
                   "two keys share the digest {:016x}{:016x} (lengths {} and {}) in {}: a collision", key.digest[0],
                   key.digest[1], entry.length, key.length, segments_[entry.segment].string());
  return &entry;
}

std::optional<std::string> Store::get(const Key& key) {
  const Entry* entry = find(key);
  if (!entry) return {};
  auto record = reader_of(entry->segment).read(entry->offset);
  if (record && record->key == key) return std::move(record->payload);
  ++damaged_;
  index_.erase(key.digest);  // so that it is computed, put and found again
  return {};
}

RecordReader& Store::reader_of(std::uint32_t segment) {
  auto& reader = readers_[segment];
  // A reader sees the bytes its file had when it was opened; our own segment grows.
  const bool own = writer_ && segment == own_segment_;
  if (reader && !own) return *reader;
  if (!reader && ++open_readers_ > kMaxOpenReaders) {
    for (auto& other : readers_) other.reset();
    open_readers_ = 1;
  }
  reader = std::make_unique<RecordReader>(segments_[segment]);
  return *reader;
}

void Store::begin_own_segment() {
  const std::string stem = fmt::format("{}-{}", host_name(), ::getpid());
  for (int attempt = 0; !writer_; ++attempt) {
    const fs::path path = directory_ / fmt::format("{}-{}{}", stem, attempt, kEnding);
    try {
      writer_ = std::make_unique<RecordWriter>(path, fingerprint_, rule_);
      own_segment_ = static_cast<std::uint32_t>(segments_.size());
      segments_.push_back(path);
      readers_.emplace_back();
    } catch (const core::IoError& error) {
      if (error.code != EEXIST) throw;  // an earlier process had our id: take the next name
    }
  }
}

void Store::put(const Key& key, std::string_view bytes) {
  if (find(key)) return;
  if (!writer_) begin_own_segment();
  const std::uint64_t offset = writer_->append(kResult, key, bytes);
  index_.emplace(key.digest, Entry{key.check, key.length, own_segment_, offset});
}

void Store::sync_if_due() {
  if (writer_) writer_->sync_if_due();
}

void Store::flush() {
  if (writer_) writer_->flush();
}

fs::path default_store_directory() {
  // The XDG base directory specification: a relative XDG_CACHE_HOME is to be ignored.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "manyworlds";
  const char* home = std::getenv("HOME");
  if (home && *home) return fs::path(home) / ".cache" / "manyworlds";
  throw core::InputError(
      "--store: no default directory, as neither XDG_CACHE_HOME nor HOME is set; give a directory or "
      "none");
}

std::unique_ptr<Store> open_store(const std::string& choice, std::string_view fingerprint) {
  if (choice == "none") return nullptr;
  return std::make_unique<Store>(choice.empty() ? default_store_directory() : fs::path(choice), fingerprint);
}

}  // namespace manyworlds::io
