// Results files: what is written is read back, the bytes depend on the results alone, and damage is bad input.
#include "io/results/results.hpp"

#include <hdf5.h>

#include <random>

#include "core/base/error.hpp"
#include "io/log/sealed.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/io/sample_results.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

TEST_CASE("results are read back as they were written") {
  const TemporaryFolder scratch;
  const Results written = sample_results();
  write_results(scratch / "results.h5", written);
  const Results read = read_results(scratch / "results.h5");
  CHECK(read.spec == written.spec);
  CHECK(read.axis_names == written.axis_names);
  CHECK(canonical_bytes(read) == canonical_bytes(written));
  CHECK(canonical_bytes(scratch / "results.h5") == canonical_bytes(written));
  REQUIRE(read.experiments.columns.size() == written.experiments.columns.size());
  for (std::size_t i = 0; i < written.experiments.columns.size(); ++i) {
    CHECK(read.experiments.columns[i].name == written.experiments.columns[i].name);
    CHECK(read.experiments.columns[i].unit == written.experiments.columns[i].unit);
    CHECK(read.experiments.columns[i].description == written.experiments.columns[i].description);
  }
  CHECK(read.experiments.columns[2].values == written.experiments.columns[2].values);
  CHECK(std::get<1>(read.experiments.columns[4].values)[1] == 2.0);
  CHECK(std::isnan(std::get<1>(read.experiments.columns[4].values)[3]));
  REQUIRE(read.provenance.size() == 3);
  CHECK((read.provenance[0].name == "ranks" && read.provenance[0].value == written.provenance[0].value));
  CHECK((read.provenance[1].name == "cpu_s" && read.provenance[1].value == written.provenance[1].value));
  CHECK((read.provenance[2].name == "host" && read.provenance[2].value == written.provenance[2].value));
}

TEST_CASE("nothing at all, empty texts and extreme values make a results file too") {
  const TemporaryFolder scratch;
  Results written = empty_results();
  SECTION("no experiments, no spec") {}
  SECTION("empty texts only") {
    written.excluded.columns = {{"a", "", "", std::vector<std::string>{"", "", ""}}};
    written.provenance = {{"empty", std::string()}};
  }
  SECTION("extremes") {
    using Integer = std::numeric_limits<std::int64_t>;
    using Real = std::numeric_limits<double>;
    written.episodes.columns = {{"i", "", "", std::vector<std::int64_t>{Integer::min(), Integer::max()}},
                                {"r", "", "", std::vector<double>{-Real::infinity(), Real::denorm_min()}},
                                {"t", "", "", std::vector<std::string>{std::string(100'000, 'x'), ""}}};
    written.spec = std::string(200'000, 's');
    written.provenance = {{"long", std::string(100'000, 'p')}};
  }
  SECTION("many columns") {
    for (int i = 0; i < 200; ++i)
      written.kernels.columns.push_back({"c" + std::to_string(999 - i), "", "", std::vector<double>{1.0 * i}});
  }
  write_results(scratch / "results.h5", written);
  const Results read = read_results(scratch / "results.h5");
  CHECK(canonical_bytes(read) == canonical_bytes(written));
  CHECK(read.provenance.size() == written.provenance.size());
  for (std::size_t i = 0; i < read.provenance.size(); ++i)
    CHECK(read.provenance[i].value == written.provenance[i].value);
}

TEST_CASE("tables of tens of thousands of rows keep every value") {
  const TemporaryFolder scratch;
  Results written = empty_results();
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    integers.push_back(static_cast<std::int64_t>(random()));
    reals.push_back(static_cast<double>(random()) * 1e-9);
    texts.push_back(std::string(random() % 20, 'q'));
  }
  written.kernels.columns = {{"i", "", "", integers}, {"r", "", "", reals}, {"t", "", "", texts}};
  write_results(scratch / "results.h5", written);
  CHECK(canonical_bytes(scratch / "results.h5") == canonical_bytes(written));
}

TEST_CASE("the same results make the same bytes, and provenance is no part of the answer") {
  const TemporaryFolder scratch;
  Results results = sample_results();
  write_results(scratch / "a.h5", results);
  // Another NaN is the same NaN.
  std::get<1>(results.experiments.columns[4].values)[3] = -std::numeric_limits<double>::quiet_NaN();
  write_results(scratch / "b.h5", results);
  CHECK(bytes_of(scratch / "a.h5") == bytes_of(scratch / "b.h5"));
  results.provenance[0].value = std::int64_t{64};
  results.provenance.push_back({"date", std::string("2026-01-01")});
  write_results(scratch / "c.h5", results);
  CHECK(bytes_of(scratch / "a.h5") != bytes_of(scratch / "c.h5"));
  CHECK(canonical_bytes(scratch / "a.h5") == canonical_bytes(scratch / "c.h5"));
}

TEST_CASE("a results file that is cut or has one flipped bit is bad input") {
  const TemporaryFolder scratch;
  write_results(scratch / "results.h5", sample_results());
  std::string bytes = bytes_of(scratch / "results.h5");
  const auto refused = [&](const std::string& damaged) {
    put_bytes(scratch / "damaged.h5", damaged);
    REQUIRE_THROWS_AS(read_results(scratch / "damaged.h5"), core::InputError);
    REQUIRE_THROWS_WITH(read_results(scratch / "damaged.h5"), Catch::Contains("damaged.h5"));
  };
  for (std::size_t size = 0; size < bytes.size(); size += 97) refused(bytes.substr(0, size));
  for (std::size_t size = bytes.size() - 100; size < bytes.size(); ++size) refused(bytes.substr(0, size));
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = random() % bytes.size();
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ (1 << (random() % 8)));
    refused(bytes);
    bytes[at] = before;
  }
  refused(bytes + "x");
}

TEST_CASE("a foreign file is bad input, sealed or not") {
  const TemporaryFolder scratch;
  const auto sealed = [&](std::string bytes) {
    seal(bytes);
    put_bytes(scratch / "foreign.h5", bytes);
  };
  SECTION("text") {
    put_bytes(scratch / "foreign.h5", "step,time\n1,2\n");
  }
  SECTION("sealed text") {
    sealed("step,time\n1,2\n");
  }
  SECTION("sealed nothing") {
    sealed("");
  }
  SECTION("an HDF5 file of somebody else") {
    const hid_t file = ::H5Fcreate((scratch / "foreign.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ::H5Fclose(file);
    SECTION("as it is") {}
    SECTION("sealed") {
      sealed(bytes_of(scratch / "foreign.h5"));
    }
  }
  CHECK_THROWS_AS(read_results(scratch / "foreign.h5"), core::InputError);
  CHECK_THROWS_WITH(read_results(scratch / "foreign.h5"), Catch::Contains("foreign.h5: not a results file"));
}

TEST_CASE("a results file whose parts do not fit together is bad input") {
  const TemporaryFolder scratch;
  write_results(scratch / "results.h5", sample_results());
  std::string bytes = bytes_of(scratch / "results.h5");
  bytes.resize(bytes.size() - 24);
  put_bytes(scratch / "broken.h5", bytes);
  const hid_t file = ::H5Fopen((scratch / "broken.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(file >= 0);
  SECTION("a column is missing that is an axis") {
    ::H5Ldelete(file, "experiments/strategy.tp", H5P_DEFAULT);
  }
  SECTION("a table is missing") {
    ::H5Ldelete(file, "subsimulations/episodes", H5P_DEFAULT);
  }
  SECTION("a column is a group") {
    ::H5Gclose(::H5Gcreate2(file, "experiments/group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  SECTION("a column has another length") {
    ::H5Ldelete(file, "experiments/mfu", H5P_DEFAULT);
    ::H5Lcreate_hard(file, "subsimulations/kernels/result_ps", file, "experiments/mfu", H5P_DEFAULT, H5P_DEFAULT);
  }
  SECTION("a column has no unit") {
    ::H5Adelete_by_name(file, "experiments/mfu", "unit", H5P_DEFAULT);
  }
  SECTION("the generator is missing") {
    ::H5Adelete(file, "generator");
  }
  SECTION("the format is of another version") {
    const hid_t attribute = ::H5Aopen(file, "format_version", H5P_DEFAULT);
    const std::int64_t version = 99;
    ::H5Awrite(attribute, H5T_NATIVE_INT64, &version);
    ::H5Aclose(attribute);
  }
  ::H5Fclose(file);
  bytes = bytes_of(scratch / "broken.h5");
  seal(bytes);
  put_bytes(scratch / "broken.h5", bytes);
  CHECK_THROWS_AS(read_results(scratch / "broken.h5"), core::InputError);
}

TEST_CASE("tables that are no tables are a fault of ours and leave no file") {
  const TemporaryFolder scratch;
  Results results;
  const std::vector<double> one{1}, two{1, 2};
  SECTION("ragged") {
    results.experiments.columns = {{"a", "", "", one}, {"b", "", "", two}};
  }
  SECTION("twice") {
    results.excluded.columns = {{"a", "", "", one}, {"a", "", "", one}};
  }
  SECTION("a path for a name") {
    results.excluded.columns = {{"a/b", "", "", one}};
  }
  SECTION("no name") {
    results.kernels.columns = {{"", "", "", one}};
  }
  SECTION("NUL") {
    results.kernels.columns = {{"a", "", "", std::vector<std::string>{std::string("a\0b", 3)}}};
  }
  SECTION("an axis without a column") {
    results.axis_names = {"tp"};
  }
  SECTION("provenance twice") {
    results.provenance = {{"a", 1.0}, {"a", 2.0}};
  }
  CHECK_THROWS_AS(write_results(scratch / "results.h5", results), core::InternalError);
  CHECK(std::filesystem::is_empty(scratch.path));
}

TEST_CASE("results that cannot be written are an error with the path, and old ones stay whole") {
  const TemporaryFolder scratch;
  write_results(scratch / "results.h5", sample_results());
  const std::string before = bytes_of(scratch / "results.h5");
  Results larger = sample_results();
  larger.spec = std::string(100'000, 's');
  {
    const FullDisk full(20'000);
    CHECK_THROWS_WITH(write_results(scratch / "results.h5", larger),
                      Catch::Contains((scratch / "results.h5").string()));
    CHECK_THROWS_AS(write_results(scratch / "results.h5", larger), core::IoError);
  }
  CHECK(bytes_of(scratch / "results.h5") == before);
  CHECK_THROWS_AS(write_results("/proc/results.h5", larger), core::IoError);
  CHECK_THROWS_AS(read_results(scratch / "absent.h5"), core::IoError);
}
