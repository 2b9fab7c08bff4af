// docs/formats.md against the code: readers in another language, written from that page, see what was written.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/log/record_log.hpp"
#include "io/results/results.hpp"
#include "tests/io/sample_results.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;
using nlohmann::json;

namespace {

std::string hex(const std::string& bytes) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

}  // namespace

TEST_CASE("the h5py and pandas one-liner of the design reads the experiments") {
  const TemporaryFolder scratch;
  const Results written = sample_results();
  write_results(scratch / "results.h5", written);
  const json read = json::parse(run_python("read_results.py", (scratch / "results.h5").string()));
  const auto& columns = written.experiments.columns;
  REQUIRE(read["columns"].size() == columns.size());
  REQUIRE(read["rows"].size() == 12);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    CHECK(read["columns"][i] == columns[i].name);
    CHECK(read["units"][columns[i].name] == columns[i].unit);
    CHECK(read["descriptions"][columns[i].name] == columns[i].description);
    constexpr const char* kTypes[] = {"int64", "float64", "object"};
    CHECK(read["dtypes"][i] == kTypes[columns[i].values.index()]);
  }
  CHECK(read["rows"][7][0] == 7);
  CHECK(read["rows"][7][1] == 8);
  CHECK(read["rows"][7][2] == "fat_tree 1:4 – überbucht");
  CHECK(read["rows"][7][3] == "out_of_memory");
  CHECK(read["rows"][7][4].is_null());  // NaN
  CHECK(read["rows"][1][4] == 2.0);
  CHECK(read["rows"][1][7] == 41 * (std::int64_t{1} << 30));
  CHECK(read["axes"] == json({"strategy.tp", "topology"}));
  CHECK((read["format_version"] == 2 && read["generator"] == "manyworlds" && read["spec"] == written.spec));
  CHECK(read["excluded"] == json({{"strategy.tp", 0}, {"reserve", 0}, {"rule", 0}}));
  CHECK(read["tables"] == json({"collectives", "episodes", "kernels"}));
  CHECK(read["ranks"] == 4);
}

TEST_CASE("a reader written from the format's page reads record files, whole and damaged") {
  const TemporaryFolder scratch;
  {
    RecordWriter writer(scratch / "log", "build-1");
    for (std::uint64_t i = 0; i < 20; ++i)
      writer.append(static_cast<std::uint32_t>(i), key_of(i), std::string(i * i, static_cast<char>(250 + i)));
  }
  std::string bytes = bytes_of(scratch / "log");
  SECTION("whole") {}
  SECTION("cut") {
    bytes.resize(bytes.size() - 1);
  }
  SECTION("flipped in a header") {
    bytes[900] = static_cast<char>(bytes[900] ^ 4);
  }
  SECTION("flipped in a payload") {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  }
  SECTION("flipped in the file's header") {
    bytes[17] = static_cast<char>(bytes[17] ^ 4);
  }
  put_bytes(scratch / "log", bytes);
  const json theirs = json::parse(run_python("read_records.py", (scratch / "log").string()));
  RecordReader ours(scratch / "log");
  if (ours.readable()) CHECK(theirs["fingerprint"] == "build-1");
  std::size_t count = 0;
  while (const auto record = ours.next()) {
    REQUIRE(count < theirs["records"].size());
    const json& other = theirs["records"][count++];
    CHECK(other["kind"] == record->kind);
    CHECK(other["digest"] == json(record->key.digest));
    CHECK(other["check"] == json(record->key.check));
    CHECK(other["length"] == record->key.length);
    CHECK(other["payload"] == hex(record->payload));
  }
  CHECK(theirs["records"].size() == count);
  CHECK(theirs["skipped_bytes"] == ours.skipped().bytes);
}
