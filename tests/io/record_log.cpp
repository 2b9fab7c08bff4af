// Record files: what is written is read, and no cut or flipped bit makes a reader crash or invent anything.
#include "io/log/record_log.hpp"

#include <xxhash.h>

#include <algorithm>
#include <random>

#include "core/base/error.hpp"
#include "io/log/little_endian.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

struct Written {
  std::vector<Record> records;
  std::vector<std::uint64_t> offsets;  // of the records, and the end of the file behind them
};

Written write_sample(const std::filesystem::path& path, std::size_t count) {
  Written written;
  RecordWriter writer(path, "build-1");
  for (std::size_t i = 0; i < count; ++i) {
    written.records.push_back({static_cast<std::uint32_t>(i % 3), key_of(i), std::string(i * 7 % 40, char('a' + i))});
    const Record& record = written.records.back();
    written.offsets.push_back(writer.append(record.kind, record.key, record.payload));
  }
  writer.flush();
  written.offsets.push_back(std::filesystem::file_size(path));
  return written;
}

struct Read {
  std::vector<Record> records;
  SkippedRegions skipped;
};

Read read_all(const std::filesystem::path& path) {
  RecordReader reader(path);
  Read read;
  while (auto record = reader.next()) read.records.push_back(std::move(*record));
  read.skipped = reader.skipped();
  return read;
}

/// A record's header that checks at `offset`, whatever length it claims.
std::string header_claiming(std::uint64_t length, std::uint64_t offset) {
  std::string header = "MWRC";
  put_little_endian(header, std::uint32_t{1});
  put_little_endian(header, length);
  header += std::string(40 + 8, '\0');
  put_little_endian(header, static_cast<std::uint64_t>(XXH3_64bits_withSeed(header.data(), 64, offset)));
  return header;
}

}  // namespace

TEST_CASE("records are read as they were written, in order, with the build that wrote them") {
  const TemporaryFolder scratch;
  const Written written = write_sample(scratch / "log", 10);
  CHECK(read_all(scratch / "log").records == written.records);
  CHECK(read_all(scratch / "log").skipped.count == 0);
  RecordReader reader(scratch / "log");
  CHECK(reader.fingerprint() == "build-1");
  for (std::size_t i = 10; i-- > 0;) CHECK(reader.read(written.offsets[i]) == written.records[i]);
  CHECK_FALSE(reader.read(written.offsets[3] + 1));
  CHECK_FALSE(reader.read(written.offsets.back()));
  CHECK_FALSE(reader.read(~std::uint64_t{0}));
}

TEST_CASE("empty payloads, payloads longer than any buffer and arbitrary bytes come back whole") {
  const TemporaryFolder scratch;
  std::string noise(300'000, '\0');
  std::mt19937 random(7);
  for (char& c : noise) c = static_cast<char>(random());
  {
    RecordWriter writer(scratch / "log", "");
    for (const std::string& payload : {std::string(), noise, std::string(1, '\0'), noise + noise})
      writer.append(9, key_of(payload.size()), payload);
  }
  const Read read = read_all(scratch / "log");
  REQUIRE(read.records.size() == 4);
  CHECK(read.records[0].payload.empty());
  CHECK(read.records[1].payload == noise);
  CHECK(read.records[2].payload == std::string(1, '\0'));
  CHECK(read.records[3].payload == noise + noise);
  CHECK(read.records[3].kind == 9);
}

TEST_CASE("a file cut at any byte gives the records before the cut and says what it skipped") {
  const TemporaryFolder scratch;
  const Written written = write_sample(scratch / "whole", 6);
  const std::string bytes = bytes_of(scratch / "whole");
  for (std::uint64_t cut = 0; cut < bytes.size(); ++cut) {
    put_bytes(scratch / "cut", bytes.substr(0, cut));
    const Read read = read_all(scratch / "cut");
    const auto whole = std::upper_bound(written.offsets.begin() + 1, written.offsets.end(), cut);
    const auto expected = static_cast<std::size_t>(whole - written.offsets.begin() - 1);
    INFO("cut at " << cut);
    REQUIRE(read.records == std::vector<Record>(written.records.begin(), written.records.begin() + expected));
    // Before the first record there is no whole file header; otherwise the torn record begins where one ends.
    const std::uint64_t torn_at = cut < written.offsets[0] ? 0 : written.offsets[expected];
    REQUIRE(read.skipped.bytes == cut - torn_at);
    if (cut > torn_at) REQUIRE((read.skipped.count == 1 && read.skipped.first_offset == torn_at));
  }
}

TEST_CASE("one flipped bit anywhere costs the record it hits and no other") {
  const TemporaryFolder scratch;
  const Written written = write_sample(scratch / "whole", 5);
  std::string bytes = bytes_of(scratch / "whole");
  for (std::uint64_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::uint64_t at = bit / 8;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (bit % 8)));
    put_bytes(scratch / "flipped", bytes);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (bit % 8)));
    const Read read = read_all(scratch / "flipped");
    INFO("bit " << bit);
    REQUIRE(read.skipped.count == 1);
    if (at < written.offsets[0]) {
      REQUIRE(read.records.empty());
      REQUIRE(read.skipped.bytes == bytes.size());
      continue;
    }
    const auto hit = static_cast<std::size_t>(std::upper_bound(written.offsets.begin(), written.offsets.end(), at) -
                                              written.offsets.begin() - 1);
    std::vector<Record> others = written.records;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(hit));
    REQUIRE(read.records == others);
    REQUIRE(read.skipped.first_offset == written.offsets[hit]);
    REQUIRE(read.skipped.bytes == written.offsets[hit + 1] - written.offsets[hit]);
  }
}

TEST_CASE("records inside a payload are never taken for records of the file") {
  const TemporaryFolder scratch;
  write_sample(scratch / "inner", 4);
  const std::string inner = bytes_of(scratch / "inner");
  std::uint64_t second = 0;
  {
    RecordWriter writer(scratch / "outer", "build-1");
    second = writer.append(1, key_of(1), inner);
    writer.append(2, key_of(2), "after");
  }
  std::string bytes = bytes_of(scratch / "outer");
  bytes[second + 20] = static_cast<char>(bytes[second + 20] ^ 1);  // the header: a reader has to search its payload
  put_bytes(scratch / "outer", bytes);
  const Read read = read_all(scratch / "outer");
  REQUIRE(read.records.size() == 1);
  CHECK(read.records[0].payload == "after");
}

TEST_CASE("damage of any kind gives only records that were written") {
  const TemporaryFolder scratch;
  const Written written = write_sample(scratch / "whole", 8);
  const std::string whole = bytes_of(scratch / "whole");
  std::mt19937 random(42);
  std::size_t survivors = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    const std::size_t begin = random() % bytes.size(), size = 1 + random() % 60;
    switch (round % 4) {
      case 0:
        bytes.erase(begin, size);
        break;
      case 1:
        bytes.insert(begin, std::string(size, static_cast<char>(random())));
        break;
      case 2:
        bytes.insert(begin, bytes.substr(random() % bytes.size(), size * 4));
        break;  // true bytes, wrong place
      default:
        for (std::size_t i = begin; i < std::min(begin + size, bytes.size()); ++i)
          bytes[i] = static_cast<char>(random());
    }
    put_bytes(scratch / "damaged", bytes);
    for (const Record& record : read_all(scratch / "damaged").records) {
      ++survivors;
      REQUIRE(std::count(written.records.begin(), written.records.end(), record) == 1);
    }
  }
  CHECK(survivors > 2000);  // and it does give records
}

TEST_CASE("a hostile length costs neither memory nor the records behind it") {
  const TemporaryFolder scratch;
  write_sample(scratch / "whole", 1);
  const std::string start = bytes_of(scratch / "whole");
  SECTION("longer than any record may be: the header is damage, and the search goes on") {
    const std::uint64_t offset = start.size();
    const std::string hostile = header_claiming(~std::uint64_t{0} - 71, offset);
    put_bytes(scratch / "hostile", start + hostile + header_claiming(0, offset + hostile.size()));
    const Read read = read_all(scratch / "hostile");
    // The last header's payload checksum is 0, which is not that of no bytes: one record, two skipped.
    CHECK(read.records.size() == 1);
    CHECK(read.skipped.count == 2);
    CHECK(read.skipped.bytes == 144);
  }
  SECTION("longer than the file: the torn tail") {
    put_bytes(scratch / "hostile", start + header_claiming(kMaxPayloadBytes, start.size()) + "some");
    const Read read = read_all(scratch / "hostile");
    CHECK(read.records.size() == 1);
    CHECK((read.skipped.count == 1 && read.skipped.first_offset == start.size() && read.skipped.bytes == 76));
  }
  SECTION("a file header that claims a fingerprint of gigabytes") {
    std::string header = "MWRECLOG";
    put_little_endian(header, std::uint32_t{1});
    put_little_endian(header, std::uint32_t{0xffffffff});
    put_bytes(scratch / "hostile", header + std::string(100, 'x'));
    CHECK_FALSE(RecordReader(scratch / "hostile").readable());
  }
}

TEST_CASE("records of another format version are refused by name, not skipped") {
  const TemporaryFolder scratch;
  std::string header = "MWRECLOG";
  put_little_endian(header, std::uint32_t{2});
  put_little_endian(header, std::uint32_t{0});
  put_little_endian(header, static_cast<std::uint64_t>(XXH3_64bits(header.data(), header.size())));
  put_bytes(scratch / "newer", header);
  CHECK_THROWS_WITH(RecordReader(scratch / "newer"), Catch::Contains("newer") && Catch::Contains("version 2"));
}

TEST_CASE("a writer syncs after 100 records, after a second, and when told") {
  const TemporaryFolder scratch;
  auto now = std::chrono::steady_clock::time_point{};
  RecordWriter writer(scratch / "log", "", {}, [&] { return now; });
  for (int i = 0; i < 99; ++i) writer.append(0, key_of(1), "x");
  CHECK(writer.unsynced() == 99);
  writer.append(0, key_of(1), "x");
  CHECK(writer.unsynced() == 0);
  writer.append(0, key_of(1), "x");
  now += std::chrono::milliseconds(999);
  writer.sync_if_due();
  CHECK(writer.unsynced() == 1);
  now += std::chrono::milliseconds(1);
  writer.sync_if_due();
  CHECK(writer.unsynced() == 0);
  writer.append(0, key_of(1), "x");
  now += std::chrono::milliseconds(1500);
  writer.append(0, key_of(1), "x");
  CHECK(writer.unsynced() == 0);
  writer.append(0, key_of(1), "x");
  writer.flush();
  CHECK(writer.unsynced() == 0);
}

TEST_CASE("a record file has one writer in its life") {
  const TemporaryFolder scratch;
  write_sample(scratch / "log", 1);
  CHECK_THROWS_AS(RecordWriter(scratch / "log", "build-1"), core::IoError);
}

TEST_CASE("a disk that fills up is an error with the path, and half a record does not stay behind") {
  const TemporaryFolder scratch;
  RecordWriter writer(scratch / "log", "");
  writer.append(1, key_of(1), std::string(1000, 'a'));
  {
    const FullDisk full(2000);
    CHECK_THROWS_WITH(writer.append(1, key_of(2), std::string(5000, 'b')), Catch::Contains((scratch / "log").string()));
    CHECK_THROWS_AS(writer.append(1, key_of(2), std::string(5000, 'b')), core::IoError);
  }
  writer.append(1, key_of(3), "room again");
  const Read read = read_all(scratch / "log");
  REQUIRE(read.records.size() == 2);
  CHECK(read.records[1].payload == "room again");
  CHECK(read.skipped.count == 0);
}
