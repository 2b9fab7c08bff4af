// A store keeps to its size and says what is wrong with it, while any number of processes write, read, evict and die.
#include "io/log/store_maintenance.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "core/base/error.hpp"
#include "io/log/store.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

std::vector<fs::path> segments_in(const fs::path& store) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(store))
    if (entry.path().extension() == kSegmentSuffix) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::uint64_t bytes_in(const fs::path& store) {
  std::uint64_t bytes = 0;
  for (const auto& path : segments_in(store)) bytes += fs::file_size(path);
  return bytes;
}

/// One record of 1,000 bytes in a segment of its own, last used `age` ago; returns its path.
fs::path put_aged(const TemporaryFolder& scratch, const std::string& build, std::uint64_t key, std::chrono::hours age) {
  static const auto now = fs::file_time_type::clock::now();  // ages differ by whole hours, also across a second's end
  const auto before = segments_in(scratch.path);
  { Store(scratch.path, build).put(key_of(key), std::string(1000, 'p')); }
  for (const auto& path : segments_in(scratch.path)) {
    if (std::find(before.begin(), before.end(), path) != before.end()) continue;
    fs::last_write_time(path, now - age);
    return path;
  }
  FAIL("no new segment");
  return {};
}

/// Runs `body` in a process of its own, which ends with status 0 when it returns and 1 when it throws.
pid_t in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    body();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

void require_success(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

}  // namespace

TEST_CASE("eviction takes whole segments, least recently used first, whatever build wrote them") {
  const TemporaryFolder scratch;
  using std::chrono::hours;
  const auto oldest = put_aged(scratch, "build-1", 1, hours(40)), old = put_aged(scratch, "build-2", 2, hours(30)),
             young = put_aged(scratch, "build-1", 3, hours(20)), youngest = put_aged(scratch, "build-2", 4, hours(10));
  const std::uint64_t each = fs::file_size(oldest);
  CHECK(prune_store(scratch.path, 4 * each).segments == 0);
  // Being read is being used: the oldest is the last one used now.
  CHECK(Store(scratch.path, "build-1").get(key_of(1)).has_value());
  const PruneResult pruned = prune_store(scratch.path, 2 * each + 1);
  CHECK((pruned.segments == 2 && pruned.bytes == 2 * each && pruned.kept_segments == 2 && pruned.unremovable == 0));
  CHECK(pruned.kept_bytes == 2 * each);
  CHECK(segments_in(scratch.path) == std::vector<fs::path>{oldest, youngest});
  CHECK(Store(scratch.path, "build-1").get(key_of(1)).has_value());
  CHECK_FALSE(Store(scratch.path, "build-1").get(key_of(3)));
  CHECK(prune_store(scratch.path, 0).kept_bytes == 0);
  CHECK(segments_in(scratch.path).empty());
  CHECK(prune_store(scratch / "nowhere", 0).segments == 0);
}

TEST_CASE("what gave nothing is not marked as used, and closing marks what did once more") {
  const TemporaryFolder scratch;
  const auto used = put_aged(scratch, "build-1", 1, std::chrono::hours(40)),
             unused = put_aged(scratch, "build-1", 2, std::chrono::hours(40));
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  Store store(scratch.path, "build-1");
  store.get(key_of(1));
  store.get(key_of(3));
  CHECK(fs::last_write_time(used) > an_hour_ago);
  fs::last_write_time(used, an_hour_ago - std::chrono::hours(1));
  store.close();
  CHECK(fs::last_write_time(used) > an_hour_ago);
  CHECK(fs::last_write_time(unused) < an_hour_ago);
}

TEST_CASE("a writer begins a new segment when its own is full, and reads them all") {
  const TemporaryFolder scratch;
  Store store(scratch.path, "build-1", {{}, 2000});
  for (std::uint64_t i = 0; i < 20; ++i) {
    store.put(key_of(i), std::string(900, static_cast<char>('a' + i)));
    for (std::uint64_t j = 0; j <= i; ++j)
      REQUIRE(store.get(key_of(j)) == std::string(900, static_cast<char>('a' + j)));
  }
  // Two records of 972 bytes and a header fill a segment to less than 2,000 bytes: a third begins before that.
  CHECK(segments_in(scratch.path).size() == 7);
  store.close();
  store.put(key_of(100), "after closing");
  CHECK(store.get(key_of(100)) == "after closing");
  CHECK(Store(scratch.path, "build-1").size() == 21);
}

TEST_CASE("a segment whose writer lives is never evicted, and when the writer is killed it is like any other") {
  const TemporaryFolder scratch;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t writer = in_child([&] {
    Store store(scratch.path, "build-1");
    store.put(key_of(1), "one");
    if (::write(ends[1], "x", 1) != 1) return;
    ::pause();
  });
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);
  const PruneResult none = prune_store(scratch.path, 0);
  CHECK((none.segments == 0 && none.unremovable == 1 && none.kept_segments == 1));
  CHECK(Store(scratch.path, "build-1").get(key_of(1)) == "one");
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(prune_store(scratch.path, 0).segments == 1);
}

TEST_CASE("a segment that goes away under those who read and write it is absent, not an error") {
  const TemporaryFolder scratch;
  for (std::uint64_t i = 1; i <= 2; ++i) Store(scratch.path, "build-1").put(key_of(i), std::to_string(i));
  Store store(scratch.path, "build-1");
  CHECK(store.get(key_of(1)) == "1");
  store.put(key_of(3), "3");
  for (const auto& path : segments_in(scratch.path)) fs::remove(path);
  CHECK(store.get(key_of(1)) == "1");      // open by then: its bytes stay as long as somebody has them open
  CHECK_FALSE(store.get(key_of(2)));       // not opened yet
  CHECK_FALSE(store.get(key_of(3)));       // our own
  store.put(key_of(2), "computed again");  // into a file without a name: kept for nobody, harmless
  store.close();
  CHECK(store.damaged() == 0);
  store.put(key_of(4), "4");
  CHECK(Store(scratch.path, "build-1").get(key_of(4)) == "4");
  fs::remove_all(scratch / "build-1");
  Store(scratch.path, "build-1").put(key_of(5), "5");
  CHECK(Store(scratch.path, "build-1").get(key_of(5)) == "5");
}

TEST_CASE("a result that two runs kept is found as long as one of its records is whole") {
  const TemporaryFolder scratch;
  Store first(scratch.path, "build-1"), second(scratch.path, "build-1");  // neither sees what the other puts
  for (Store* store : {&first, &second}) {
    store->put(key_of(1), "payload");
    store->close();
  }
  const auto paths = segments_in(scratch.path);
  REQUIRE(paths.size() == 2);
  const std::string whole = bytes_of(paths[0]);
  for (const auto& path : paths) {
    put_bytes(path, whole.substr(0, whole.size() - 1) + "X");
    Store store(scratch.path, "build-1");
    CHECK(store.size() == 2);
    CHECK(store.get(key_of(1)) == "payload");
    put_bytes(path, whole);
  }
  for (const auto& path : paths) put_bytes(path, whole.substr(0, whole.size() - 1) + "X");
  Store store(scratch.path, "build-1");
  CHECK_FALSE(store.get(key_of(1)));
  CHECK(store.damaged() == 2);
}

TEST_CASE("checking a store names records of this build that do not hold what their key promises, and no other's") {
  const TemporaryFolder scratch;
  for (const std::string build : {"build-1", "build-2"}) {
    std::filesystem::create_directory(scratch / build);
    RecordWriter forged(scratch / build / "host-1-0.segment", build);
    forged.append(kResultRecord, key_of(1), keyed_payload(key_of(1), "one"));
    forged.append(kResultRecord, key_of(2), keyed_payload(key_of(1), "one"));
  }
  const StoreCheck check = verify_store(scratch.path, "build-1");
  CHECK(check.records == 3);
  REQUIRE(check.damaged.size() == 1);
  CHECK(check.damaged[0].path == (scratch / "build-1/host-1-0.segment").string());
  CHECK(check.damaged[0].skipped.count == 0);
  REQUIRE(check.damaged[0].invalid_records.count == 1);
  CHECK(check.damaged[0].invalid_records.examples[0].key == key_of(2));
}

TEST_CASE("checking a store names every flipped bit, and tells a torn tail from damage") {
  const TemporaryFolder scratch;
  {
    Store store(scratch.path, "build-1");
    store.put(key_of(1), "some payload");
    store.put(key_of(2), "");
    store.put(key_of(3), std::string(60, 'q'));
  }
  Store(scratch.path, "build-2").put(key_of(1), "another build's");
  const auto path = segments_in(scratch.path).at(0);
  const std::string whole = bytes_of(path);
  const StoreCheck good = verify_store(scratch.path, "build-1");
  CHECK((good.segments == 2 && good.records == 4 && good.bytes == bytes_in(scratch.path)));
  CHECK((good.damaged.empty() && good.torn.empty()));

  std::string flipped = whole;
  for (std::uint64_t bit = 0; bit < whole.size() * 8; ++bit) {
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    put_bytes(path, flipped);
    flipped[bit / 8] = whole[bit / 8];
    const StoreCheck check = verify_store(scratch.path, "build-1");
    INFO("bit " << bit);
    REQUIRE((check.damaged.size() == 1 && check.torn.empty()));
    REQUIRE(check.damaged[0].path == path.string());
    REQUIRE(check.damaged[0].skipped.first_offset <= bit / 8);
    REQUIRE(bit / 8 < check.damaged[0].skipped.first_offset + check.damaged[0].skipped.bytes);
  }
  const std::uint64_t header = 16 + 7 + 8, first = header + 72 + 12 + 8, second = first + 72 + 8;
  for (std::uint64_t cut = 0; cut < whole.size(); ++cut) {
    put_bytes(path, whole.substr(0, cut));
    const StoreCheck check = verify_store(scratch.path, "build-1");
    const bool between_records = cut == header || cut == first || cut == second;
    INFO("cut at " << cut);
    REQUIRE(check.damaged.empty());
    REQUIRE(check.torn.size() == (between_records ? 0 : 1));
    if (!between_records) REQUIRE_THAT(check.torn[0].skipped.describe("f"), Catch::Contains("never finished"));
  }
}

TEST_CASE("a store's builds are counted each for itself, the last used first") {
  const TemporaryFolder scratch;
  put_aged(scratch, "build-1", 1, std::chrono::hours(2));
  put_aged(scratch, "build-2", 1, std::chrono::hours(1));
  put_aged(scratch, "build-1", 2, std::chrono::hours(3));
  const auto builds = stored_builds(scratch.path);
  REQUIRE(builds.size() == 2);
  CHECK((builds[0].fingerprint == "build-2" && builds[0].segments == 1 && builds[0].records == 1));
  CHECK((builds[1].fingerprint == "build-1" && builds[1].segments == 2 && builds[1].records == 2));
  CHECK(builds[0].bytes + builds[1].bytes == bytes_in(scratch.path));
  CHECK(builds[0].last_used - builds[1].last_used == 3600);
  CHECK(stored_builds(scratch / "nowhere").empty());
}

TEST_CASE("pruning removes what nobody can ever use, and leaves alone what it does not know") {
  const TemporaryFolder scratch;
  const auto kept = put_aged(scratch, "build-1", 1, std::chrono::hours(1));
  put_bytes(scratch / "build-1" / "empty-1-0.segment", "");
  put_bytes(scratch / "build-1" / "torn-1-0.segment", bytes_of(kept).substr(0, 20));
  put_bytes(scratch / "build-1" / "notes.txt", "mine");
  fs::create_directory(scratch / "not a build");
  const PruneResult pruned = prune_store(scratch.path, kNoLimit);
  CHECK((pruned.unusable == 2 && pruned.segments == 0 && pruned.bytes == 20));
  CHECK(segments_in(scratch.path) == std::vector<fs::path>{kept});
  CHECK(prune_store(scratch.path, 0).segments == 1);
  CHECK(bytes_of(scratch / "build-1" / "notes.txt") == "mine");
  CHECK(fs::exists(scratch / "not a build"));
}

TEST_CASE("those who prune at once remove no more than one of them would") {
  const TemporaryFolder scratch;
  for (std::uint64_t i = 0; i < 40; ++i) put_aged(scratch, "build-1", i, std::chrono::hours(100 - i));
  const std::uint64_t each = bytes_in(scratch.path) / 40;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) children.push_back(in_child([&] { prune_store(scratch.path, 15 * each); }));
  for (const pid_t child : children) require_success(child);
  CHECK(segments_in(scratch.path).size() == 15);
  Store store(scratch.path, "build-1");
  for (std::uint64_t i = 0; i < 40; ++i) CHECK(store.get(key_of(i)).has_value() == (i >= 25));
}

TEST_CASE("a store that can only be read gives what it holds, and keeps nothing new") {
  const TemporaryFolder scratch;
  fs::permissions(scratch.path, fs::perms(0755));  // who may enter it may read what is put there
  put_aged(scratch, "build-1", 1, std::chrono::hours(9));
  fs::permissions(scratch.path, fs::perms(0555));
  fs::permissions(scratch / "build-1", fs::perms(0555));
  const pid_t child = in_child([&] {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(2);  // root may write anywhere
    Store store(scratch.path, "build-1"), other(scratch.path, "build-2");
    if (store.get(key_of(1)) != std::string(1000, 'p') || other.get(key_of(1))) ::_exit(3);
    store.close();
    for (Store* each : {&store, &other}) {
      try {
        each->put(key_of(2), "new");
        ::_exit(4);
      } catch (const core::IoError&) {
      }
    }
    if (prune_store(scratch.path, 0).unremovable != 1) ::_exit(5);
  });
  require_success(child);
  fs::permissions(scratch.path, fs::perms(0755));
  fs::permissions(scratch / "build-1", fs::perms(0755));
  CHECK(Store(scratch.path, "build-1").size() == 1);
}

TEST_CASE("a segment that finds no room on its disk leaves no file") {
  const TemporaryFolder scratch;
  Store store(scratch.path, "build-1");
  {
    const FullDisk full(10);
    CHECK_THROWS_AS(store.put(key_of(1), "one"), core::IoError);
  }
  CHECK(segments_in(scratch.path).empty());
  store.put(key_of(1), "one");
  CHECK(Store(scratch.path, "build-1").get(key_of(1)) == "one");
}

TEST_CASE("a store outlives writers that are killed and segments that are evicted under everybody's hands") {
  const TemporaryFolder scratch;
  const auto payload_of = [](std::uint64_t key) {
    return std::string(100 + key * 37 % 3000, static_cast<char>('a' + key % 26));
  };
  constexpr std::uint64_t kKeys = 400;
  std::mt19937 random(5);
  std::uint64_t killed = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<pid_t> writers;
    for (int writer = 0; writer < 3; ++writer) {
      const auto seed = random();
      writers.push_back(in_child([&, seed] {
        std::mt19937 own(seed);
        Store store(scratch.path, "build-1", {{}, 20'000});
        for (int i = 0; i < 3000; ++i) {
          const std::uint64_t key = own() % kKeys;
          if (const auto found = store.get(key_of(key)); found && *found != payload_of(key)) ::_exit(2);
          store.put(key_of(key), payload_of(key));
        }
        if (store.damaged() > 0) ::_exit(3);
      }));
    }
    const pid_t pruner = in_child([&] {
      for (int i = 0; i < 30; ++i) prune_store(scratch.path, 60'000);
    });
    ::usleep(1000 + static_cast<useconds_t>(random() % 20'000));
    ::kill(writers[0], SIGKILL);
    for (const pid_t writer : writers) {
      int status = 0;
      REQUIRE(::waitpid(writer, &status, 0) == writer);
      if (WIFSIGNALED(status)) ++killed;
      CAPTURE(status);
      REQUIRE((status == 0 || (WIFSIGNALED(status) && writer == writers[0])));
    }
    require_success(pruner);
    const StoreCheck check = verify_store(scratch.path, "build-1");
    REQUIRE(check.damaged.empty());
    Store store(scratch.path, "build-1");
    for (std::uint64_t key = 0; key < kKeys; ++key)
      if (const auto found = store.get(key_of(key))) REQUIRE(*found == payload_of(key));
  }
  CHECK(killed > 0);
  CHECK(prune_store(scratch.path, 60'000).kept_bytes <= 60'000);
}
