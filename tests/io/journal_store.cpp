// Journals outlive the processes that write them; stores are shared by processes that know nothing of each other.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "core/base/error.hpp"
#include "io/log/journal.hpp"
#include "io/log/store.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

struct Replayed {
  JournalReplay summary;
  std::vector<Record> records;
};

Replayed replay(const TemporaryFolder& scratch, const std::string& fingerprint = "build-1") {
  Replayed replayed;
  replayed.summary = replay_journal(scratch.path, fingerprint, [&](const Record& record) {
    replayed.records.push_back(record);
    return true;
  });
  return replayed;
}

/// Sets an environment variable for as long as it lives; nullptr removes it.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Environment() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<std::filesystem::path> files_below(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("a journal of many lives gives the first result of every key, in the order of writing") {
  const TemporaryFolder scratch;
  Journal(scratch.path, "build-1").append(1, key_of(1), "first");
  {
    Journal second(scratch.path, "build-1");
    second.append(1, key_of(1), "again");
    second.append(3, key_of(1), "another kind");
    second.append(1, key_of(2), "second");
  }
  for (int life = 3; life <= 12; ++life) Journal(scratch.path, "build-1").append(1, key_of(life), "later");
  const Replayed replayed = replay(scratch);
  REQUIRE(replayed.records.size() == 13);
  CHECK(replayed.records[0] == Record{1, key_of(1), "first"});
  CHECK(replayed.records[1] == Record{3, key_of(1), "another kind"});
  CHECK(replayed.records[2] == Record{1, key_of(2), "second"});
  CHECK(replayed.records[12].key == key_of(12));
  CHECK((replayed.summary.files == 12 && replayed.summary.records == 13 && replayed.summary.repeated == 1));
  CHECK(replay(scratch).records == replayed.records);
}

TEST_CASE("of several failures the last counts, and none where there is a result, whichever came first") {
  const TemporaryFolder scratch;
  {
    Journal first(scratch.path, "build-1");
    first.append(kFailureRecord, key_of(1), "crash\nonce");
    first.append(kFailureRecord, key_of(2), "environment\nsmall");
    first.append(kResultRecord, key_of(3), "three");
  }
  {
    Journal second(scratch.path, "build-1");
    second.append(kResultRecord, key_of(1), "one");
    second.append(kFailureRecord, key_of(2), "environment\nlarger");
    second.append(kFailureRecord, key_of(3), "crash\nlater");
  }
  const Replayed replayed = replay(scratch);
  REQUIRE(replayed.records.size() == 3);
  CHECK(replayed.records[0] == Record{kResultRecord, key_of(3), "three"});
  CHECK(replayed.records[1] == Record{kResultRecord, key_of(1), "one"});
  CHECK(replayed.records[2] == Record{kFailureRecord, key_of(2), "environment\nlarger"});
  CHECK((replayed.summary.records == 3 && replayed.summary.failures == 1));
}

TEST_CASE("a journal's lives keep their order when their number grows a digit") {
  const TemporaryFolder scratch;
  {
    RecordWriter(scratch / "999999-host-1.journal", "build-1").append(1, key_of(1), keyed_payload(key_of(1), "before"));
  }
  Journal(scratch.path, "build-1").append(1, key_of(1), "after");
  CHECK(replay(scratch).records.at(0).payload == "before");
}

TEST_CASE("what another build journalled is left alone and counted") {
  const TemporaryFolder scratch;
  Journal(scratch.path, "build-0").append(1, key_of(1), "old");
  Journal(scratch.path, "build-1").append(1, key_of(1), "new");
  const Replayed replayed = replay(scratch);
  REQUIRE(replayed.records.size() == 1);
  CHECK(replayed.records[0].payload == "new");
  CHECK(replayed.summary.other_build_files == 1);
}

TEST_CASE("a journal cut by a crash goes on, and the damage is told with file and byte") {
  const TemporaryFolder scratch;
  std::string torn;
  {
    Journal journal(scratch.path, "build-1");
    journal.append(1, key_of(1), "whole");
    journal.append(1, key_of(2), "torn");
    torn = journal.path();
  }
  const auto size = std::filesystem::file_size(torn);
  std::filesystem::resize_file(torn, size - 1);
  put_bytes(scratch / "000002-host-1.journal", "");  // died before its first byte
  Journal(scratch.path, "build-1").append(1, key_of(2), "computed again");
  const Replayed replayed = replay(scratch);
  REQUIRE(replayed.records.size() == 2);
  CHECK(replayed.records[1].payload == "computed again");
  const std::string told = replayed.summary.describe_damage();
  CHECK_THAT(told, Catch::Contains(torn) && Catch::Contains("83 bytes") &&
                       Catch::Contains("at byte " + std::to_string(size - 84)));
}

TEST_CASE("a record that was appended survives kill -9 of its writer") {
  const TemporaryFolder scratch;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Journal journal(scratch.path, "build-1");
    for (std::uint64_t i = 0;; ++i) {
      journal.append(1, key_of(i), std::string(i % 500, 'p'));
      if (::write(ends[1], "x", 1) != 1) ::_exit(1);
    }
  }
  char acknowledged[300];
  std::size_t count = 0;
  while (count < sizeof acknowledged) {
    const auto got = ::read(ends[0], acknowledged, sizeof acknowledged - count);
    REQUIRE(got > 0);
    count += static_cast<std::size_t>(got);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  const Replayed replayed = replay(scratch);
  REQUIRE(replayed.records.size() >= count);
  for (std::uint64_t i = 0; i < replayed.records.size(); ++i)
    REQUIRE(replayed.records[i] == Record{1, key_of(i), std::string(i % 500, 'p')});
}

TEST_CASE("a journal needs its directory") {
  CHECK_THROWS_WITH(Journal("/nowhere/journal", "b"), Catch::Contains("/nowhere/journal"));
  CHECK_THROWS_AS(replay_journal("/nowhere/journal", "b", [](const Record&) { return true; }), core::IoError);
}

TEST_CASE("a store gives back what earlier runs and this one put") {
  const TemporaryFolder scratch;
  {
    Store store(scratch.path, "build-1");
    CHECK_FALSE(store.get(key_of(1)));
    store.put(key_of(1), "one");
    store.put(key_of(1), "is kept already");
    store.put(key_of(2), "");
    CHECK(store.get(key_of(1)) == "one");
    CHECK(store.get(key_of(2)) == "");
  }
  Store store(scratch.path, "build-1");
  CHECK((store.size() == 2 && store.segments() == 1));
  store.put(key_of(3), std::string(100'000, 'z'));
  CHECK(store.get(key_of(3)) == std::string(100'000, 'z'));
  CHECK(store.get(key_of(1)) == "one");
  CHECK(store.segments() == 2);
  CHECK(store.damaged() == 0);
}

TEST_CASE("a store that looks again finds what others have put meanwhile, also while they write") {
  const TemporaryFolder scratch;
  Store one(scratch.path, "build-1"), other(scratch.path, "build-1", {.sync = {}, .segment_bytes = 2'000});
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("record " << i);
    other.put(key_of(i), std::string(i * 7, 'o'));
    one.put(key_of(100 + i), "mine");  // so that it has segments of its own to leave out
    CHECK_FALSE(one.get(key_of(i)));
    one.refresh();
    REQUIRE(one.get(key_of(i)) == std::string(i * 7, 'o'));
    REQUIRE(one.size() == 2 * (i + 1));
  }
  CHECK(one.segments() > 5);
  one.close();
  one.refresh();
  CHECK(one.size() == 120);
  std::uint64_t bytes = 0;
  for (const auto& file : files_below(scratch.path)) bytes += std::filesystem::file_size(file);
  CHECK(one.bytes() == bytes);
  CHECK(one.damaged() == 0);
}

TEST_CASE("a store that looks again passes over what is half written, and finds it when it is whole") {
  const TemporaryFolder scratch;
  {
    Store writer(scratch.path, "build-1");
    writer.put(key_of(1), "one");
    writer.put(key_of(2), std::string(500, 't'));
  }
  const std::vector<std::filesystem::path> files = files_below(scratch.path);
  REQUIRE(files.size() == 1);
  const std::string whole = read_file(files[0]);
  for (std::size_t size = 0; size < whole.size(); size += 13) {
    INFO(size << " bytes");
    std::filesystem::resize_file(files[0], 0);
    std::ofstream(files[0], std::ios::binary) << whole.substr(0, size);
    Store reader(scratch.path, "build-1");
    CHECK_FALSE(reader.get(key_of(2)));
    std::ofstream(files[0], std::ios::binary) << whole;
    reader.refresh();
    REQUIRE(reader.get(key_of(1)) == "one");
    REQUIRE(reader.get(key_of(2)) == std::string(500, 't'));
    CHECK((reader.size() == 2 && reader.damaged() == 0));
  }
}

TEST_CASE("a store that is only read leaves no segment behind") {
  const TemporaryFolder scratch;
  Store(scratch.path, "build-1").get(key_of(1));
  CHECK(files_below(scratch.path).empty());
}

TEST_CASE("two keys with one digest are a collision, which is named, and both keep their own result") {
  const TemporaryFolder scratch;
  Store store(scratch.path, "build-1");
  store.put(key_of(1), "one");
  auto other_check = key_of(1), other_length = key_of(1);
  ++other_check.check[1];
  ++other_length.length;
  CHECK_FALSE(store.get(other_check));
  CHECK(store.damaged() == 1);
  REQUIRE(store.invalid_records().size() == 1);
  const auto& [path, invalid_records] = *store.invalid_records().begin();
  CHECK_THAT(invalid_records.describe(path), Catch::Contains(path + ": the record at byte 31 ") &&
                                                 Catch::Contains(key_of(1).hex()) && Catch::Contains("collision"));
  store.put(other_length, "x");
  CHECK((store.get(key_of(1)) == "one" && store.get(other_length) == "x"));
  Store later(scratch.path, "build-1");
  CHECK((later.get(key_of(1)) == "one" && later.get(other_length) == "x" && !later.get(other_check)));
}

TEST_CASE("a payload is one key's alone") {
  const std::string payload = keyed_payload(key_of(1), "result");
  CHECK(payload.size() == 6 + 8);
  CHECK(verified_result(payload, key_of(1)) == "result");
  CHECK(verified_result(keyed_payload(key_of(1), ""), key_of(1)) == "");
  for (std::size_t size = 0; size < payload.size(); ++size)
    CHECK_FALSE(verified_result(payload.substr(0, size), key_of(1)));
  for (std::size_t bit = 0; bit < 8 * payload.size(); ++bit) {
    std::string flipped = payload;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(verified_result(flipped, key_of(1)));
  }
  auto other = key_of(1);
  for (std::uint64_t* word : {&other.digest[0], &other.digest[1], &other.check[0], &other.check[1], &other.length}) {
    ++*word;
    CHECK_FALSE(verified_result(payload, other));
    --*word;
  }
}

TEST_CASE("a record whose checksums fit and whose content does not is named, and a later one of its key counts") {
  const TemporaryFolder scratch;
  {
    RecordWriter forged(scratch / "000001-host-1.journal", "build-1");
    forged.append(kResultRecord, key_of(1), "no inner check");
    forged.append(kResultRecord, key_of(2), keyed_payload(key_of(3), "another key's"));
    forged.append(kResultRecord, key_of(4), keyed_payload(key_of(4), "refused"));
    forged.append(kFailureRecord, key_of(5), "refused");
    forged.append(kResultRecord, key_of(6), keyed_payload(key_of(6), "six"));
  }
  {
    Journal later(scratch.path, "build-1");
    later.append(kResultRecord, key_of(1), "one");
    later.append(kResultRecord, key_of(4), "four");
  }
  std::vector<Record> taken;
  const auto replayed = replay_journal(scratch.path, "build-1", [&](const Record& record) {
    if (record.payload == "refused") return false;
    taken.push_back(record);
    return true;
  });
  CHECK(taken == std::vector<Record>{{kResultRecord, key_of(6), "six"},
                                     {kResultRecord, key_of(1), "one"},
                                     {kResultRecord, key_of(4), "four"}});
  CHECK((replayed.records == 3 && replayed.failures == 0 && replayed.repeated == 0));
  REQUIRE(replayed.damage.size() == 1);
  CHECK(replayed.damage[0].invalid_records.count == 4);
  const std::string told = replayed.describe_damage();
  for (const std::uint64_t key : {1, 2, 4, 5}) CHECK_THAT(told, Catch::Contains(key_of(key).hex()));
  CHECK_THAT(told, Catch::Contains("000001-host-1.journal: the record at byte 31 "));
  CHECK_THAT(told, !Catch::Contains(key_of(6).hex()));
}

TEST_CASE("misfits beyond the first few are counted, not named") {
  InvalidRecords invalid_records;
  for (std::uint64_t i = 0; i < 1000; ++i) invalid_records.add(i, key_of(i), kChangedContent);
  const std::string told = invalid_records.describe("FILE");
  CHECK(std::count(told.begin(), told.end(), '\n') == 11);
  CHECK_THAT(told, Catch::Contains("FILE: and 990 records more of that kind"));
}

TEST_CASE(
    "a store gives nothing that is not its key's, or that its reader refuses, and keeps what is computed instead") {
  const TemporaryFolder scratch;
  std::filesystem::create_directory(scratch / "build-1");
  {
    RecordWriter forged(scratch / "build-1/host-1-0.segment", "build-1");
    forged.append(kResultRecord, key_of(1), keyed_payload(key_of(2), "another key's"));
    forged.append(kResultRecord, key_of(3), keyed_payload(key_of(3), "refused"));
    forged.append(kResultRecord, key_of(4), keyed_payload(key_of(4), "four"));
  }
  Store store(scratch.path, "build-1");
  const auto holds = [](std::string_view bytes) { return bytes != "refused"; };
  for (const std::uint64_t key : {1, 3}) {
    CHECK_FALSE(store.get(key_of(key), holds));
    store.put(key_of(key), "computed");
    CHECK(store.get(key_of(key), holds) == "computed");
  }
  CHECK(store.get(key_of(4), holds) == "four");
  CHECK(store.damaged() == 2);
  REQUIRE(store.invalid_records().size() == 1);
  CHECK(store.invalid_records().begin()->second.count == 2);
}

TEST_CASE("builds do not see each other's results") {
  const TemporaryFolder scratch;
  Store(scratch.path, "build-1").put(key_of(1), "one");
  Store other(scratch.path, "build.1");  // another build, though its folder has the same name
  CHECK_FALSE(other.get(key_of(1)));
  other.put(key_of(1), "of the other");
  CHECK(Store(scratch.path, "build-1").get(key_of(1)) == "one");
  CHECK(Store(scratch.path, "build.1").get(key_of(1)) == "of the other");
}

TEST_CASE("a damaged record of a store is absent, is counted, and can be put again") {
  const TemporaryFolder scratch;
  Store(scratch.path, "build-1").put(key_of(1), "payload");
  const auto segment = files_below(scratch.path).at(0);
  std::string bytes = bytes_of(segment);
  bytes.back() = 'X';
  put_bytes(segment, bytes);
  Store store(scratch.path, "build-1");
  CHECK_FALSE(store.get(key_of(1)));
  CHECK(store.damaged() == 1);
  store.put(key_of(1), "computed again");
  CHECK(store.get(key_of(1)) == "computed again");
}

TEST_CASE("a store reads more segments than it keeps open") {
  const TemporaryFolder scratch;
  for (std::uint64_t i = 0; i < 150; ++i) Store(scratch.path, "build-1").put(key_of(i), std::to_string(i));
  Store store(scratch.path, "build-1");
  CHECK(store.segments() == 150);
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t i = 0; i < 150; ++i) REQUIRE(store.get(key_of(i)) == std::to_string(i));
  CHECK(files_below("/proc/self/fd").size() < 100);
}

TEST_CASE("processes that write and read a store at once do not disturb each other") {
  const TemporaryFolder scratch;
  constexpr std::uint64_t kWriters = 4, kEach = 300;
  std::vector<pid_t> children;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    Store store(scratch.path, "build-1");
    for (std::uint64_t i = 0; i < kEach; ++i) {
      store.put(key_of(i), "shared " + std::to_string(i));
      store.put(key_of(1000 * (writer + 1) + i), std::to_string(writer));
    }
    store.flush();
    ::_exit(0);
  }
  const auto check_all = [&] {
    Store store(scratch.path, "build-1");
    std::uint64_t seen = 0;
    for (std::uint64_t i = 0; i < kEach; ++i) {
      if (const auto shared = store.get(key_of(i))) REQUIRE(*shared == "shared " + std::to_string(i));
      for (std::uint64_t writer = 0; writer < kWriters; ++writer)
        if (const auto own = store.get(key_of(1000 * (writer + 1) + i))) {
          REQUIRE(*own == std::to_string(writer));
          ++seen;
        }
    }
    return seen;
  };
  for (int i = 0; i < 5; ++i) check_all();
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  CHECK(check_all() == kWriters * kEach);
  CHECK(files_below(scratch.path).size() == kWriters);
}

TEST_CASE("the store option: nothing is the user's cache, anything else is a directory") {
  const TemporaryFolder scratch;
  CHECK(store_directory("here") == "here");
  {
    const Environment cache("XDG_CACHE_HOME", scratch.path.c_str());
    CHECK(default_store_directory() == scratch / "manyworlds");
    CHECK(store_directory("") == scratch / "manyworlds");
  }
  const Environment home("HOME", "/home/somebody");
  for (const char* unusable : {static_cast<const char*>(nullptr), "", "relative/path"}) {
    const Environment cache("XDG_CACHE_HOME", unusable);
    CHECK(default_store_directory() == "/home/somebody/.cache/manyworlds");
  }
  const Environment no_cache("XDG_CACHE_HOME", nullptr), no_home("HOME", nullptr);
  CHECK_THROWS_WITH(default_store_directory(), Catch::Contains("--store"));
}

TEST_CASE("a store that cannot be made or written is an error with the path") {
  const TemporaryFolder scratch;
  CHECK_THROWS_WITH(Store("/proc/nowhere", "build-1"), Catch::Contains("/proc/nowhere"));
  Store store(scratch.path, "build-1");
  store.put(key_of(1), "one");
  const FullDisk full(300);
  CHECK_THROWS_WITH(store.put(key_of(2), std::string(1000, 'x')), Catch::Contains(store.directory().string()));
  CHECK(store.get(key_of(1)) == "one");
  CHECK_FALSE(store.get(key_of(2)));
}
