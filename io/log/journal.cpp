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

constexpr std::string_view kSuffix = ".journal";

bool is_journal_file(const std::string& name) {
  return name.size() > kSuffix.size() && name.ends_with(kSuffix) && name.front() >= '0' && name.front() <= '9';
}

/// Returns the incarnation number with which a journal file's name begins.
std::uint64_t incarnation_of(const std::string& name) {
  std::uint64_t incarnation = 0;
  std::from_chars(name.data(), name.data() + name.size(), incarnation);
  return incarnation;
}

std::filesystem::path next_file(const std::filesystem::path& directory) {
  std::uint64_t last = 0;
  for (const std::string& name : list_directory(directory))
    if (is_journal_file(name)) last = std::max(last, incarnation_of(name));
  return directory / fmt::format("{:06}-{}-{}{}", last + 1, host_name(), ::getpid(), kSuffix);
}

}  // namespace

Journal::Journal(const std::filesystem::path& directory, std::string_view fingerprint, SyncPolicy policy,
                 RecordWriter::Clock clock)
    : writer_(std::make_unique<RecordWriter>(next_file(directory), fingerprint, policy, std::move(clock))) {}

void Journal::append(std::uint32_t kind, const core::sharing::Key& key, std::string_view payload) {
  if (kind == kResultRecord)
    writer_->append(kind, key, keyed_payload(key, payload));
  else
    writer_->append(kind, key, payload);
}

std::string JournalReplay::describe_damage() const {
  std::string lines;
  for (const auto& [path, skipped, invalid_records] : damage)
    lines += skipped.describe(path) + invalid_records.describe(path);
  return lines;
}

namespace {

class Replayer {
 public:
  explicit Replayer(const std::function<bool(const Record&)>& visit) : visit_(visit) {}

  void replay_file(const std::filesystem::path& path, std::string_view fingerprint) {
    RecordReader reader(path);
    ++replay_.files;
    if (reader.readable() && reader.fingerprint() != fingerprint) {
      ++replay_.other_build_files;
      return;
    }
    replay_.damage.push_back({path.string(), {}, {}});
    const std::size_t file = replay_.damage.size() - 1;
    while (auto record = reader.next()) {
      const Location location{file, reader.last_offset()};
      if (record->kind == kFailureRecord)
        failures_.insert_or_assign(record->key, Failure{std::move(*record), location});
      else
        replay_record(std::move(*record), location);
    }
    replay_.damage[file].skipped = reader.skipped();
  }

  JournalReplay finish() {
    for (const auto& [key, failure] : failures_) {
      if (seen_.contains({kResultRecord, key})) continue;
      if (visit_(failure.record))
        ++replay_.records, ++replay_.failures;
      else
        reject(failure.record, failure.location, kInvalidResult);
    }
    std::erase_if(replay_.damage, [](const JournalReplay::Damage& file) {
      return file.skipped.count == 0 && file.invalid_records.count == 0;
    });
    return std::move(replay_);
  }

 private:
  struct Location {
    std::size_t file;  // index in replay_.damage
    std::uint64_t offset;
  };
  struct Failure {
    Record record;
    Location location;
  };

  void replay_record(Record&& record, const Location& location) {
    if (seen_.contains({record.kind, record.key})) {
      ++replay_.repeated;
      return;
    }
    if (record.kind == kResultRecord) {
      const auto result = verified_result(record.payload, record.key);
      if (!result) return reject(record, location, kChangedContent);
      record.payload.resize(result->size());
    }
    if (!visit_(record)) return reject(record, location, kInvalidResult);
    seen_.emplace(record.kind, record.key);
    ++replay_.records;
  }

  void reject(const Record& record, const Location& location, std::string_view reason) {
    replay_.damage[location.file].invalid_records.add(location.offset, record.key, reason);
  }

  const std::function<bool(const Record&)>& visit_;
  JournalReplay replay_;
  std::set<std::pair<std::uint32_t, core::sharing::Key>> seen_;
  std::map<core::sharing::Key, Failure> failures_;  // the last failure of each key
};

}  // namespace

JournalReplay replay_journal(const std::filesystem::path& directory, std::string_view fingerprint,
                             const std::function<bool(const Record&)>& visit) {
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const std::string& name : list_directory(directory))
    if (is_journal_file(name)) files.emplace_back(incarnation_of(name), name);
  std::sort(files.begin(), files.end());
  Replayer replayer(visit);
  for (const auto& [incarnation, name] : files) replayer.replay_file(directory / name, fingerprint);
  return replayer.finish();
}

}  // namespace manyworlds::io
