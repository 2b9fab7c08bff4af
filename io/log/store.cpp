#include "io/log/store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base/error.hpp"

namespace manyworlds::io {

namespace fs = std::filesystem;
using core::sharing::Key;
using std::chrono::steady_clock;

namespace {

constexpr const char* kComponents = "components";  // beside the folders of builds, whose names are longer digests
constexpr int kMaxOpenReaders = 64;                // a store may have more segments than a process may have open files
constexpr std::chrono::hours kTouchInterval{1};

/// Returns the folder of a build. The segments' headers are authoritative for the build that wrote them.
std::string folder_of(std::string_view fingerprint) {
  std::string name(fingerprint);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '-';
  return name.empty() ? "unnamed" : name;
}

/// Returns whether an error only means that an existing directory is read-only.
bool is_read_only(const core::IoError& error, const fs::path& directory) {
  std::error_code ignored;
  return (error.code == EROFS || error.code == EACCES || error.code == EPERM) && fs::is_directory(directory, ignored);
}

}  // namespace

Store::Store(const fs::path& directory, std::string_view fingerprint, StoreOptions options)
    : directory_(directory / folder_of(fingerprint)), fingerprint_(fingerprint), options_(options) {
  try {
    make_private_directories(directory);
    make_directory_like_its_parent(directory_);
  } catch (const core::IoError& error) {
    if (is_read_only(error, directory)) return;  // and holds nothing of this build
    throw;
  }
  refresh();
}

void Store::refresh() {
  std::error_code error;
  if (!fs::is_directory(directory_, error)) return;
  for (const std::string& name : list_directory(directory_)) {
    if (!name.ends_with(kSegmentSuffix)) continue;
    const fs::path path = directory_ / name;
    const std::uint64_t bytes = fs::file_size(path, error);
    const auto [known, is_new] = numbers_.try_emplace(path.string(), static_cast<std::uint32_t>(segments_.size()));
    if (is_new) segments_.emplace_back().path = path;
    Segment& segment = segments_[known->second];
    if (error || segment.bytes == bytes || (writer_ && own_segment_ == known->second)) continue;
    segment.bytes = bytes;
    if (segment.reader) segment.reader.reset(), --open_readers_;  // it ends where the file ended
    index_segment(known->second);
  }
}

/// Adds the records of a segment from where they are not in the index yet.
void Store::index_segment(std::uint32_t number) {
  Segment& segment = segments_[number];
  try {
    RecordReader reader(segment.path);
    if (!reader.readable() || reader.fingerprint() != fingerprint_) {
      damaged_ += reader.skipped().damaged();
      return;
    }
    if (segment.indexed > 0) reader.go_on_at(segment.indexed);
    segment.indexed = reader.next_offset();
    while (const auto header = reader.next_header()) {
      if (header->kind == kResultRecord)
        index_.emplace(header->key.digest, Entry{header->key.check, header->key.length, number, header->offset});
      segment.indexed = reader.next_offset();
    }
    damaged_ += reader.skipped().damaged();
  } catch (const core::IoError&) {     // evicted since it was listed, or unreadable: its results are computed again
  } catch (const core::InputError&) {  // written in another format version
  }
}

std::uint64_t Store::bytes() const {
  std::uint64_t sum = writer_ ? own_bytes_ : 0;
  for (const Segment& segment : segments_) sum += segment.bytes;
  return sum;
}

bool Store::has(const Key& key) const {
  const auto [first, last] = index_.equal_range(key.digest);
  return std::any_of(first, last, [&](const auto& known) { return known.second.matches(key); });
}

std::optional<std::string> Store::get(const Key& key, const Validator& is_valid) {
  auto [at, last] = index_.equal_range(key.digest);
  while (at != last) {
    const Entry entry = at->second;
    if (!entry.matches(key)) {
      reject(entry, key, kCollision);
      ++at;
      continue;
    }
    auto record = read(entry);
    if (record && record->key == key) {
      const auto result = verified_result(record->payload, key);
      if (result && (!is_valid || is_valid(*result))) {
        touch(segments_[entry.segment]);
        record->payload.resize(result->size());
        return std::move(record->payload);
      }
      reject(entry, key, result ? kInvalidResult : kChangedContent);
    }
    at = index_.erase(at);  // a lost result is computed and stored again
  }
  return {};
}

void Store::reject(const Entry& entry, const Key& key, std::string_view reason) {
  ++damaged_;
  invalid_records_[segments_[entry.segment].path.string()].add(entry.offset, key, reason);
}

std::optional<Record> Store::read(const Entry& entry) {
  try {
    auto record = reader_of(entry.segment).read(entry.offset);
    if (!record) ++damaged_;
    return record;
  } catch (const core::IoError& error) {
    if (error.code != ENOENT && error.code != ESTALE) ++damaged_;  // those two: another process evicted the segment
    return {};
  }
}

RecordReader& Store::reader_of(std::uint32_t segment) {
  auto& reader = segments_[segment].reader;
  // A reader sees the bytes that its file had when it was opened, but our own segment grows.
  const bool own = writer_ && segment == own_segment_;
  if (reader && !own) return *reader;
  if (!reader && open_readers_ >= kMaxOpenReaders) {
    for (auto& other : segments_) other.reader.reset();
    open_readers_ = 0;
  }
  auto opened = std::make_unique<RecordReader>(segments_[segment].path);
  if (!reader) ++open_readers_;
  reader = std::move(opened);
  return *reader;
}

/// Sets the modification time of a segment's file to now: it records the last use without any further file.
void Store::touch(Segment& segment) {
  const auto now = steady_clock::now();
  if (segment.last_touched && now - *segment.last_touched < kTouchInterval) return;
  segment.last_touched = now;
  ::utimensat(AT_FDCWD, segment.path.c_str(), nullptr, 0);  // fails on a read-only store, which keeps its times
}

void Store::begin_own_segment() {
  const std::string stem = fmt::format("{}-{}", host_name(), ::getpid());
  while (!writer_) {
    const fs::path path = directory_ / fmt::format("{}-{}{}", stem, next_own_number_++, kSegmentSuffix);
    make_private_directories(directory_.parent_path());  // the whole store may have been removed
    make_directory_like_its_parent(directory_);
    try {
      auto writer = std::make_unique<RecordWriter>(path, fingerprint_, options_.sync);
      if (!writer->lock_for_lifetime())
        continue;  // deleted before we locked it, as if its writer were dead: take the next name
      writer_ = std::move(writer);
    } catch (const core::IoError& error) {
      if (error.code != EEXIST) throw;  // an earlier process had our process id: take the next name
    }
  }
  own_segment_ = static_cast<std::uint32_t>(segments_.size());
  own_bytes_ = 0;
  numbers_.emplace(writer_->path(), own_segment_);
  segments_.emplace_back().path = writer_->path();
}

void Store::end_own_segment() {
  writer_->flush();
  if (segments_[own_segment_].reader) --open_readers_;
  segments_[own_segment_].reader.reset();  // it may have been opened before the last record was written
  std::error_code error;                   // that of a file that is gone: it is not looked at again
  Segment& own = segments_[own_segment_];
  own.bytes = own.indexed = fs::file_size(own.path, error);
  writer_.reset();
}

void Store::put(const Key& key, std::string_view bytes) {
  if (has(key)) return;
  if (writer_ && own_bytes_ >= options_.segment_bytes) end_own_segment();
  if (!writer_) begin_own_segment();
  const std::string payload = keyed_payload(key, bytes);
  const std::uint64_t offset = writer_->append(kResultRecord, key, payload);
  own_bytes_ = offset + payload.size();
  index_.emplace(key.digest, Entry{key.check, key.length, own_segment_, offset});
}

void Store::sync_if_due() {
  if (writer_) writer_->sync_if_due();
}

void Store::flush() {
  if (writer_) writer_->flush();
}

void Store::close() {
  if (writer_) end_own_segment();
  for (Segment& segment : segments_) {
    if (!segment.last_touched) continue;
    segment.last_touched.reset();
    touch(segment);
  }
}

fs::path default_store_directory() {
  // The XDG base directory specification: a relative XDG_CACHE_HOME is ignored.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "manyworlds";
  const char* home = std::getenv("HOME");
  if (home && *home) return fs::path(home) / ".cache" / "manyworlds";
  throw core::InputError(
      "--store: no default directory, as neither XDG_CACHE_HOME nor HOME is set; give a directory or "
      "none");
}

fs::path store_directory(const std::string& choice) {
  return choice.empty() ? default_store_directory() : fs::path(choice);
}

fs::path components_directory(const fs::path& store) {
  return store / kComponents;
}

}  // namespace manyworlds::io
