// Results files that somebody made on purpose, with seals that fit: each is refused in a line that names what is wrong.
#include <hdf5.h>
#include <sys/resource.h>

#include <functional>

#include "core/base/error.hpp"
#include "io/log/sealed.hpp"
#include "io/ranking/compare.hpp"
#include "io/ranking/diff.hpp"
#include "io/ranking/top.hpp"
#include "io/results/canonical_bytes.hpp"
#include "io/results/results.hpp"
#include "tests/io/sample_results.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

constexpr const char* kColumn = "experiments/mfu";

hid_t text_type(std::size_t bytes) {
  const hid_t type = ::H5Tcopy(H5T_C_S1);
  ::H5Tset_size(type, bytes);
  ::H5Tset_strpad(type, H5T_STR_NULLPAD);
  ::H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/// A dataset with what a column has besides, and without values.
void put_column(hid_t file, const char* path, hid_t type, hid_t space, hid_t creation = H5P_DEFAULT) {
  ::H5Ldelete(file, path, H5P_DEFAULT);
  const hid_t dataset = ::H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  for (const char* name : {"unit", "description"}) {
    const hid_t attribute =
        ::H5Acreate2(dataset, name, text_type(1), ::H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT);
    ::H5Awrite(attribute, text_type(1), "x");
    ::H5Aclose(attribute);
  }
  ::H5Dclose(dataset);
}

hid_t rows(hsize_t count) {
  return ::H5Screate_simple(1, &count, nullptr);
}

/// Of rows that may become more.
hid_t growing(hsize_t count) {
  const hsize_t any = H5S_UNLIMITED;
  return ::H5Screate_simple(1, &count, &any);
}

hid_t chunked(hsize_t chunk) {
  const hid_t creation = ::H5Pcreate(H5P_DATASET_CREATE);
  ::H5Pset_chunk(creation, 1, &chunk);
  return creation;
}

/// The sample as `edit` leaves it, sealed.
std::filesystem::path edited(const TemporaryFolder& scratch, const std::function<void(hid_t)>& edit,
                             const Results& results = sample_results()) {
  const std::filesystem::path path = scratch / "edited.h5";
  write_results(path, results);
  std::string bytes = bytes_of(path);
  bytes.resize(bytes.size() - 24);
  put_bytes(path, bytes);
  const hid_t file = ::H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(file >= 0);
  edit(file);
  ::H5Fclose(file);
  bytes = bytes_of(path);
  seal(bytes);
  put_bytes(path, bytes);
  return path;
}

struct Case {
  const char* name;
  std::function<void(hid_t)> edit;
  const char* told;
};

/// Kibibytes of the most memory that this process and its children had.
long most_memory() {
  rusage own{}, children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return std::max(own.ru_maxrss, children.ru_maxrss);
}

}  // namespace

TEST_CASE("a results file that leads elsewhere, claims what it has not, or is of another form is refused by name") {
  const hid_t real = H5T_IEEE_F64LE;
  const std::vector<Case> cases{
      {"2^62 rows, never written",
       [&](hid_t f) { put_column(f, kColumn, real, rows(hsize_t{1} << 62), chunked(1024)); },
       "experiments/mfu is too large"},
      {"a hundred million rows, never written",
       [&](hid_t f) { put_column(f, kColumn, real, rows(100'000'000), chunked(1024)); },
       "experiments/mfu is too large"},
      {"rows never written", [&](hid_t f) { put_column(f, kColumn, real, rows(12), chunked(4)); },
       "experiments/mfu was never wholly written"},
      {"rows never written, in one piece", [&](hid_t f) { put_column(f, kColumn, real, rows(12)); },
       "experiments/mfu was never wholly written"},
      {"a chunk of 4 GiB", [&](hid_t f) { put_column(f, kColumn, real, growing(12), chunked(500'000'000)); },
       "experiments/mfu"},
      {"rows times width beyond 64 bits",
       [&](hid_t f) { put_column(f, kColumn, text_type(0x7fffffff), rows(hsize_t{1} << 32)); },
       "experiments/mfu is too large"},
      {"texts of 2 GiB", [&](hid_t f) { put_column(f, kColumn, text_type(0x7fffffff), rows(12)); },
       "experiments/mfu is too large"},
      {"another file's bytes",
       [&](hid_t f) {
         const hid_t creation = ::H5Pcreate(H5P_DATASET_CREATE);
         ::H5Pset_external(creation, "/etc/passwd", 0, 96);
         put_column(f, kColumn, real, rows(12), creation);
       },
       "experiments/mfu lies in another file"},
      {"another file's dataset",
       [&](hid_t f) {
         const hid_t creation = ::H5Pcreate(H5P_DATASET_CREATE);
         ::H5Pset_virtual(creation, rows(12), "/etc/other.h5", "x", rows(12));
         put_column(f, kColumn, real, rows(12), creation);
       },
       "experiments/mfu"},
      {"a soft link",
       [](hid_t f) {
         ::H5Ldelete(f, kColumn, H5P_DEFAULT);
         ::H5Lcreate_soft("/experiments/id", f, kColumn, H5P_DEFAULT, H5P_DEFAULT);
       },
       "experiments/mfu is a link to somewhere else"},
      {"a soft link to the table itself",
       [](hid_t f) {
         ::H5Ldelete(f, kColumn, H5P_DEFAULT);
         ::H5Lcreate_soft("/experiments", f, kColumn, H5P_DEFAULT, H5P_DEFAULT);
       },
       "experiments/mfu is a link to somewhere else"},
      {"an external link",
       [](hid_t f) {
         ::H5Ldelete(f, kColumn, H5P_DEFAULT);
         ::H5Lcreate_external("/etc/other.h5", "/x", f, kColumn, H5P_DEFAULT, H5P_DEFAULT);
       },
       "experiments/mfu is a link to somewhere else"},
      {"a table that is a link",
       [](hid_t f) {
         ::H5Ldelete(f, "excluded", H5P_DEFAULT);
         ::H5Lcreate_soft("/experiments", f, "excluded", H5P_DEFAULT, H5P_DEFAULT);
       },
       "excluded is a link to somewhere else"},
      {"another filter",
       [&](hid_t f) {
         const hid_t creation = chunked(12);
         ::H5Pset_fletcher32(creation);
         put_column(f, kColumn, real, rows(12), creation);
       },
       "experiments/mfu is packed by other filters"},
      {"a filter twice",
       [&](hid_t f) {
         const hid_t creation = chunked(12);
         ::H5Pset_deflate(creation, 9);
         ::H5Pset_deflate(creation, 9);
         put_column(f, kColumn, real, rows(12), creation);
       },
       "experiments/mfu is packed by other filters"},
      {"two dimensions",
       [&](hid_t f) {
         const hsize_t sizes[2]{3, 4};
         put_column(f, kColumn, real, ::H5Screate_simple(2, sizes, nullptr));
       },
       "experiments/mfu is not a list"},
      {"a single value", [&](hid_t f) { put_column(f, kColumn, real, ::H5Screate(H5S_SCALAR)); },
       "experiments/mfu is not a list"},
      {"no extent", [&](hid_t f) { put_column(f, kColumn, real, ::H5Screate(H5S_NULL)); },
       "experiments/mfu is not a list"},
      {"32-bit floats", [&](hid_t f) { put_column(f, kColumn, H5T_IEEE_F32LE, rows(12)); },
       "experiments/mfu is neither"},
      {"texts of any length",
       [&](hid_t f) {
         const hid_t type = ::H5Tcopy(H5T_C_S1);
         ::H5Tset_size(type, H5T_VARIABLE);
         put_column(f, kColumn, type, rows(12));
       },
       "experiments/mfu is neither"},
      {"no ids", [](hid_t f) { ::H5Ldelete(f, "experiments/id", H5P_DEFAULT); }, "experiments has no column 'id'"},
      {"no step times", [](hid_t f) { ::H5Ldelete(f, "experiments/step_time_s", H5P_DEFAULT); },
       "experiments has no column 'step_time_s'"},
      {"the sweep twice", [](hid_t f) { put_column(f, "spec", text_type(10), rows(2)); },
       "/spec is not a single value"},
  };
  const TemporaryFolder scratch;
  for (const Case& each : cases) {
    INFO(each.name);
    const auto path = edited(scratch, each.edit);
    CHECK_THROWS_AS(read_results(path), core::InputError);
    CHECK_THROWS_WITH(read_results(path), Catch::StartsWith(path.string() + ": not a results file of manyworlds: ") &&
                                              Catch::Contains(each.told));
  }
  CHECK(most_memory() < 500'000);
}

TEST_CASE("a column of another type than readers rely on is refused") {
  const TemporaryFolder scratch;
  for (const auto& [name, type] : required_columns()) {
    Results results = sample_results();
    for (Column& column : results.experiments.columns)
      if (column.name == name) column.values = std::vector<double>(12);
    if (type == ElementType::real)
      for (Column& column : results.experiments.columns)
        if (column.name == name) column.values = std::vector<std::string>(12);
    const auto path = edited(
        scratch, [](hid_t) {}, results);
    CHECK_THROWS_WITH(read_results(path), Catch::Contains("experiments/" + std::string(name)));
  }
}

TEST_CASE("a file of constants that unpacks to gigabytes is refused before they are there") {
  const TemporaryFolder scratch;
  Results results = sample_results();
  const std::vector<std::string> texts(2'000'000);
  results.kernels.columns.clear();
  for (const char* name : {"a", "b", "c"}) results.kernels.columns.push_back({name, "", "", texts});
  write_results(scratch / "results.h5", results);
  REQUIRE(std::filesystem::file_size(scratch / "results.h5") < 600'000);
  CHECK_THROWS_WITH(read_results(scratch / "results.h5"), Catch::Contains("subsimulations/kernels/"));
}

TEST_CASE("one dataset under a thousand names counts as often as it is held") {
  const TemporaryFolder scratch;
  Results results = sample_results();
  results.kernels.columns = {{"c", "", "", std::vector<double>(100'000)}};
  const auto path = edited(
      scratch,
      [](hid_t file) {
        for (int i = 0; i < 1000; ++i)
          ::H5Lcreate_hard(file, "subsimulations/kernels/c", file,
                           ("subsimulations/kernels/d" + std::to_string(i)).c_str(), H5P_DEFAULT, H5P_DEFAULT);
      },
      results);
  CHECK_THROWS_WITH(read_results(path), Catch::Contains("is too large for a file of this size"));
}

TEST_CASE("flipped bytes under a seal that fits are bad input or another answer, and end nobody") {
  const TemporaryFolder scratch;
  write_results(scratch / "results.h5", sample_results());
  std::string bytes = bytes_of(scratch / "results.h5");
  bytes.resize(bytes.size() - 24);
  std::uint64_t state = 7;
  std::size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string changed = bytes;
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      changed[(state >> 33) % changed.size()] = static_cast<char>(state >> 17);
    }
    seal(changed);
    put_bytes(scratch / "changed.h5", changed);
    try {
      const Results read = read_results(scratch / "changed.h5");
      render_text(read, rank_experiments(read, {}));
    } catch (const core::InputError&) {
      ++refused;
    }
  }
  CHECK(refused < 300);
}

TEST_CASE("figures that make no sense are shown or refused, and never end a comparison of ours") {
  for (const double odd : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 1e308,
                           -1e308, 5e-324, kNone}) {
    Results results = sample_results();
    for (Column& column : results.experiments.columns)
      if (auto* reals = std::get_if<std::vector<double>>(&column.values)) reals->at(0) = odd;
    render_text(results, rank_experiments(results, {}));
    try {
      render_text(compare_experiments(results, 0, 1));
    } catch (const core::InputError& error) {
      CHECK_THAT(error.what(), Catch::Contains("which is out of range"));
    }
  }
}

TEST_CASE("answers differ where only the borders between names do") {
  Results left = sample_results(), right = left;
  left.kernels.columns[0].unit = "x";
  left.kernels.columns[0].description = "y] text: z";
  right.kernels.columns[0].unit = "x] text: y";
  right.kernels.columns[0].description = "z";
  CHECK(compare_results(left, right).verdict == Verdict::different);
}
