// A results file of ours that somebody edited, in its tables, through HDF5, or byte by byte, under a seal that fits: it
// is read or refused as the program does it, and whatever is read, everybody can use.
#include <fuzzer/FuzzedDataProvider.h>

#include <limits>

#include "core/base/error.hpp"
#include "io/log/file.hpp"
#include "io/log/sealed.hpp"
#include "io/ranking/compare.hpp"
#include "io/ranking/diff.hpp"
#include "io/ranking/top.hpp"
#include "io/report/report.hpp"
#include "io/results/canonical_bytes.hpp"
#include "io/results/csv.hpp"
#include "io/results/hdf5.hpp"
#include "tests/fuzz/work_folder.hpp"
#include "tests/io/sample_results.hpp"

using namespace manyworlds;
using namespace manyworlds::io;

namespace {

double drawn_real(FuzzedDataProvider& from) {
  using Real = std::numeric_limits<double>;
  return from.PickValueInArray({0.0, -0.0, 1.0, -1.0, Real::infinity(), -Real::infinity(), Real::quiet_NaN(),
                                Real::max(), Real::lowest(), Real::denorm_min(), 1.0 + Real::epsilon(), 1e17,
                                from.ConsumeFloatingPoint<double>()});
}

std::int64_t drawn_integer(FuzzedDataProvider& from) {
  using Integer = std::numeric_limits<std::int64_t>;
  return from.PickValueInArray({std::int64_t{0}, std::int64_t{-1}, std::int64_t{3}, Integer::max(), Integer::min(),
                                std::int64_t{1} << 53, from.ConsumeIntegral<std::int64_t>()});
}

std::string drawn_text(FuzzedDataProvider& from) {
  std::string text = from.ConsumeRandomLengthString(20);
  std::erase(text, '\0');
  return text;
}

void edit_column(FuzzedDataProvider& from, Column& column) {
  const std::size_t rows = column.rows();
  switch (from.ConsumeIntegralInRange(0, 3)) {
    case 0:
      column.values = std::vector<std::int64_t>(rows, drawn_integer(from));
      break;
    case 1:
      column.values = std::vector<double>(rows, drawn_real(from));
      break;
    case 2:
      column.values = std::vector<std::string>(rows, drawn_text(from));
      break;
    default:
      if (rows == 0) return;
      const auto row = from.ConsumeIntegralInRange<std::size_t>(0, rows - 1);
      if (auto* integers = std::get_if<std::vector<std::int64_t>>(&column.values))
        (*integers)[row] = drawn_integer(from);
      if (auto* reals = std::get_if<std::vector<double>>(&column.values)) (*reals)[row] = drawn_real(from);
      if (auto* texts = std::get_if<std::vector<std::string>>(&column.values)) (*texts)[row] = drawn_text(from);
  }
}

void edit_tables(FuzzedDataProvider& from, Results& results) {
  const auto tables = result_tables(results);
  for (int edits = from.ConsumeIntegralInRange(0, 6); edits > 0; --edits) {
    auto& columns = tables[from.ConsumeIntegralInRange<std::size_t>(0, tables.size() - 1)].second->columns;
    if (columns.empty()) continue;
    const auto at = from.ConsumeIntegralInRange<std::size_t>(0, columns.size() - 1);
    switch (from.ConsumeIntegralInRange(0, 6)) {
      case 0:
        columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        columns[at].name = from.PickValueInArray<std::string>(
            {"step_time_low_s", "step_time_high_s", "distinguishable_ratio", "step_time_ps", "memory_x_bytes",
             "fidelity", "step_time_basis_gpu", "step_time_basis_kind", "energy_per_token_j", "reason",
             drawn_text(from)});
        break;
      case 2:
        columns[at].unit = from.PickValueInArray<std::string>({"s", "bytes", "USD", "", drawn_text(from)});
        break;
      case 3:
        if (!columns[at].name.empty()) results.axis_names.push_back(columns[at].name);
        break;
      case 4:
        results.spec = drawn_text(from);
        break;
      default:
        edit_column(from, columns[at]);
    }
  }
}

hdf5::Handle open_to_edit(const std::string& image) {
  const hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate");
  H5Pset_fapl_core(access, 1 << 16, false);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
  H5Pset_file_image(access, const_cast<char*>(image.data()), image.size());
  return {H5Fopen("edited", H5F_ACC_RDWR, access), H5Fclose, "H5Fopen"};
}

/// A dataset without values, of any type and size.
void put_dataset(FuzzedDataProvider& from, hid_t file, const char* path) {
  const hdf5::Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate");
  const hsize_t rows = from.PickValueInArray<hsize_t>({0, 1, 12, 2048, hsize_t{1} << 32, hsize_t{1} << 61}), chunk = 12;
  if (from.ConsumeBool() && rows >= chunk) H5Pset_chunk(creation, 1, &chunk);
  if (from.ConsumeBool()) H5Pset_external(creation, "/etc/passwd", 0, H5F_UNLIMITED);
  const hdf5::Handle text = hdf5::text_type(from.ConsumeIntegralInRange<std::size_t>(1, 1 << 20));
  const hid_t type = from.PickValueInArray<hid_t>({H5T_STD_I64LE, H5T_IEEE_F64LE, H5T_NATIVE_FLOAT, text});
  H5Ldelete(file, path, H5P_DEFAULT);
  const hid_t result = H5Dcreate2(file, path, type, hdf5::array_space(rows), H5P_DEFAULT, creation, H5P_DEFAULT);
  if (result >= 0) H5Dclose(result);
}

std::string edit_through_hdf5(FuzzedDataProvider& from, const std::string& image) {
  const hdf5::ErrorStackSilencer silence;
  const hdf5::Handle file = open_to_edit(image);
  constexpr const char* kPaths[] = {
      "experiments/mfu", "experiments/id", "spec", "excluded", "subsimulations/kernels/key", "experiments/status"};
  for (int edits = from.ConsumeIntegralInRange(0, 3); edits > 0; --edits) {
    const char *path = from.PickValueInArray(kPaths), *other = from.PickValueInArray(kPaths);
    switch (from.ConsumeIntegralInRange(0, 4)) {
      case 0:
        H5Ldelete(file, path, H5P_DEFAULT);
        break;
      case 1:
        H5Ldelete(file, path, H5P_DEFAULT);
        H5Lcreate_soft(other, file, path, H5P_DEFAULT, H5P_DEFAULT);
        break;
      case 2:
        H5Ldelete(file, path, H5P_DEFAULT);
        H5Lcreate_hard(file, other, file, path, H5P_DEFAULT, H5P_DEFAULT);
        break;
      case 3:
        H5Adelete_by_name(file, path, from.PickValueInArray({"unit", "description"}), H5P_DEFAULT);
        break;
      default:
        put_dataset(from, file, path);
    }
  }
  return hdf5::image_of(file);
}

void edit_bytes(FuzzedDataProvider& from, std::string& image) {
  for (int edits = from.ConsumeIntegralInRange(0, 16); edits > 0 && from.remaining_bytes() > 0; --edits)
    image[from.ConsumeIntegralInRange<std::size_t>(0, image.size() - 1)] = from.ConsumeIntegral<char>();
}

template <class Use>
void use(const Use& consumer) {
  try {
    consumer();
  } catch (const core::InputError&) {
  }
}

void use_all(const Results& read, const Results& sample) {
  for (const auto& [name, table] : result_tables(read)) csv(*table);
  for (const char* by : {"tokens_per_s_per_gpu", "step_time_s", "memory_peak_bytes"})
    use([&] {
      const Ranking ranking = rank_experiments(read, {5, by, ""});
      render_text(read, ranking);
      render_json(read, ranking);
    });
  use([&] {
    const ExperimentComparison comparison = compare_experiments(read, 0, 1);
    render_text(comparison);
    render_json(comparison);
  });
  use([&] { report_page(read, {}); });
  use([&] { report_markdown(read, {}, ""); });
  fuzz::require(compare_results(read, read).verdict == Verdict::same);
  compare_results(sample, read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  const Results sample = testing::sample_results();
  Results results = sample;
  FuzzedDataProvider from(data, size);
  edit_tables(from, results);
  try {
    write_results(folder.path / "results.h5", results);
  } catch (const core::InternalError&) {  // no tables: a writer of ours makes no such file
    return 0;
  }
  std::string image = read_file(folder.path / "results.h5");
  image.resize(unseal(image)->size());
  image = edit_through_hdf5(from, image);
  if (from.ConsumeBool()) edit_bytes(from, image);
  seal(image);
  folder.put("results.h5", image);
  try {
    use_all(read_results(folder.path / "results.h5"), sample);
  } catch (const core::InputError&) {
  }
  return 0;
}
