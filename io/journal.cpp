#include "io/journal.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"

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
  writer_->append(kind, key, payload);
}

std::string JournalReplay::describe_damage() const {
  std::string lines;
  for (const auto& [path, skipped] : damage) lines += skipped.describe(path);
  return lines;
}

JournalReplay replay_journal(const std::filesystem::path& directory, std::string_view fingerprint,
                             const std::function<void(Record&&)>& visit) {
  JournalReplay replay;
  std::set<std::pair<std::uint32_t, core::sharing::Key>> seen;
  std::map<core::sharing::Key, Record> failures;  // the last of each key
  std::vector<std::pair<std::uint64_t, std::string>> files;
  for (const std::string& name : list_directory(directory))
    if (is_journal_file(name)) files.emplace_back(life_of(name), name);
  std::sort(files.begin(), files.end());
  for (const auto& [life, name] : files) {
    RecordReader reader(directory / name);
    ++replay.files;
    if (reader.readable() && reader.fingerprint() != fingerprint) {
      ++replay.other_build_files;
      continue;
    }
    while (auto record = reader.next()) {
      if (record->kind == kFailureRecord) {
        failures.insert_or_assign(record->key, std::move(*record));
        continue;
      }
      if (!seen.emplace(record->kind, record->key).second) {
        ++replay.repeated;
        continue;
      }
      ++replay.records;
      visit(std::move(*record));
    }
    if (reader.skipped().count > 0) replay.damage.push_back({(directory / name).string(), reader.skipped()});
  }
  for (auto& [key, failure] : failures) {
    if (seen.contains({kResultRecord, key})) continue;
    ++replay.records;
    ++replay.failures;
    visit(std::move(failure));
  }
  return replay;
}

}  // namespace manyworlds::io
