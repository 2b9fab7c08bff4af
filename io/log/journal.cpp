#include "io/log/journal.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::io {

namespace {

constexpr std::string_view kEnding = ".journal";

bool is_journal_file(const std::string& name) {
  return name.size() > kEnding.size() && name.ends_with(kEnding) && name.front() >= '0' && name.front() <= '9';
}

/// The number a file's name begins with.
std::uint64_t life_of(const std::string& name) {
  std::uint64_t life = 0;
  std::from_chars(name.data(), name.data() + name.size(), life);
  return life;
}

std::filesystem::path next_file(const std::filesystem::path& directory) {
  std::uint64_t last = 0;
  for (const std::string& name : list_directory(directory))
    if (is_journal_file(name)) last = std::max(last, life_of(name));
  return directory / fmt::format("{:06}-{}-{}{}", last + 1, host_name(), ::getpid(), kEnding);
}

}  // namespace

Journal::Journal(const std::filesystem::path& directory, std::string_view fingerprint, SyncRule rule,
                 RecordWriter::Clock clock)
    : writer_(std::make_unique<RecordWriter>(next_file(directory), fingerprint, rule, std::move(clock))) {}

void Journal::append(std::uint32_t kind, const core::sharing::Key& key, std::string_view payload) {
  if (kind == kResultRecord)
    writer_->append(kind, key, keyed_payload(key, payload));
  else
    writer_->append(kind, key, payload);
}

std::string JournalReplay::describe_damage() const {
  std::string lines;
  for (const auto& [path, skipped, misfits] : damage) lines += skipped.describe(path) + misfits.describe(path);
  return lines;
}

namespace {

class Replayer {
 public:
  explicit Replayer(const std::function<bool(const Record&)>& visit) : visit_(visit) {}

  void take_file(const std::filesystem::path& path, std::string_view fingerprint) {
    RecordReader reader(path);
    ++replay_.files;
    if (reader.readable() && reader.fingerprint() != fingerprint) {
      ++replay_.other_build_files;
      return;
    }
    replay_.damage.push_back({path.string(), {}, {}});
    const std::size_t file = replay_.damage.size() - 1;
    while (auto record = reader.next()) {
      const Place place{file, reader.last_offset()};
      if (record->kind == kFailureRecord)
        failures_.insert_or_assign(record->key, Failure{std::move(*record), place});
      else
        take(std::move(*record), place);
    }
    replay_.damage[file].skipped = reader.skipped();
  }

  JournalReplay finish() {
    for (const auto& [key, failure] : failures_) {
      if (seen_.contains({kResultRecord, key})) continue;
      if (visit_(failure.record))
        ++replay_.records, ++replay_.failures;
      else
        refuse(failure.record, failure.place, kNoSuchResult);
    }
    std::erase_if(replay_.damage,
                  [](const JournalReplay::Damage& file) { return file.skipped.count == 0 && file.misfits.count == 0; });
    return std::move(replay_);
  }

 private:
  struct Place {
    std::size_t file;  // in replay_.damage
    std::uint64_t offset;
  };
  struct Failure {
    Record record;
    Place place;
  };

  void take(Record&& record, const Place& place) {
    if (seen_.contains({record.kind, record.key})) {
      ++replay_.repeated;
      return;
    }
    if (record.kind == kResultRecord) {
      const auto result = result_in(record.payload, record.key);
      if (!result) return refuse(record, place, kChangedContent);
      record.payload.resize(result->size());
    }
    if (!visit_(record)) return refuse(record, place, kNoSuchResult);
    seen_.emplace(record.kind, record.key);
    ++replay_.records;
  }

  void refuse(const Record& record, const Place& place, std::string_view reason) {
    replay_.damage[place.file].misfits.add(place.offset, record.key, reason);
  }

  const std::function<bool(const Record&)>& visit_;
  JournalReplay replay_;
  std::set<std::pair<std::uint32_t, core::sharing::Key>> seen_;
  std::map<core::sharing::Key, Failure> failures_;  // the last of each key
};

}  // namespace

JournalReplay replay_journal(const std::filesystem::path& directory, std::string_view fingerprint,
                             const std::function<bool(const Record&)>& visit) {
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const std::string& name : list_directory(directory))
    if (is_journal_file(name)) files.emplace_back(life_of(name), name);
  std::sort(files.begin(), files.end());
  Replayer replayer(visit);
  for (const auto& [life, name] : files) replayer.take_file(directory / name, fingerprint);
  return replayer.finish();
}

}  // namespace manyworlds::io
