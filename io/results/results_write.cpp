// Writes a results file: the HDF5 image is built in memory, sealed, and written atomically.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/version.hpp"
#include "io/log/file.hpp"
#include "io/log/sealed.hpp"
#include "io/results/hdf5.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

namespace {

using hdf5::check;
using hdf5::Handle;

constexpr hsize_t kChunkRows = 1024;
constexpr unsigned kDeflateLevel = 4;

void check_text(const std::string& text, const std::string& where) {
  MANYWORLDS_CHECK(text.find('\0') == std::string::npos, "a text in {} holds a NUL", where);
}

void check_table(const std::string& name, const Table& table) {
  std::set<std::string> names;
  for (const Column& column : table.columns) {
    MANYWORLDS_CHECK(!column.name.empty() && column.name != "." && column.name.find('/') == std::string::npos,
                     "column '{}' of {}", column.name, name);
    MANYWORLDS_CHECK(names.insert(column.name).second, "{} has column '{}' twice", name, column.name);
    MANYWORLDS_CHECK(column.rows() == table.rows(), "column '{}' of {} has {} rows, others {}", column.name, name,
                     column.rows(), table.rows());
    for (const std::string& text : {column.name, column.unit, column.description}) check_text(text, name);
    if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values))
      for (const std::string& text : *texts) check_text(text, column.name);
  }
}

void write_attribute(hid_t object, const std::string& name, hid_t file_type, hid_t memory_type, const void* value) {
  const Handle space = hdf5::scalar_space();
  const Handle attribute(H5Acreate2(object, name.c_str(), file_type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         "H5Acreate2");
  check(H5Awrite(attribute, memory_type, value), "H5Awrite");
}

void write_attribute(hid_t object, const std::string& name, const std::string& value) {
  const Handle type = hdf5::text_type(value.size());
  write_attribute(object, name, type, type, value.c_str());
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
  write_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
  write_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

std::size_t longest(const std::vector<std::string>& texts) {
  std::size_t bytes = 1;
  for (const std::string& text : texts) bytes = std::max(bytes, text.size());
  return bytes;
}

std::string padded(const std::vector<std::string>& texts, std::size_t width) {
  std::string packed(texts.size() * width, '\0');
  for (std::size_t row = 0; row < texts.size(); ++row)
    std::copy(texts[row].begin(), texts[row].end(), packed.begin() + static_cast<std::ptrdiff_t>(row * width));
  return packed;
}

Handle write_dataset(hid_t group, const std::string& name, hid_t file_type, hid_t memory_type, hsize_t rows,
                     const void* values) {
  const Handle space = hdf5::array_space(rows);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate");
  check(H5Pset_obj_track_times(creation, false), "H5Pset_obj_track_times");
  check(H5Pset_attr_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
        "H5Pset_attr_creation_order");
  if (rows > 0) {
    const hsize_t chunk = std::min(rows, kChunkRows);
    check(H5Pset_chunk(creation, 1, &chunk), "H5Pset_chunk");
    check(H5Pset_shuffle(creation), "H5Pset_shuffle");
    check(H5Pset_deflate(creation, kDeflateLevel), "H5Pset_deflate");
  }
  Handle dataset(H5Dcreate2(group, name.c_str(), file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose,
                 "H5Dcreate2");
  if (rows > 0) check(H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite");
  return dataset;
}

/// Gives all NaNs one bit pattern, so that equal results have equal bytes.
std::vector<double> with_one_nan(std::vector<double> values) {
  for (double& value : values)
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return values;
}

Handle write_values(hid_t group, const Column& column) {
  const hsize_t rows = column.rows();
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&column.values))
    return write_dataset(group, column.name, H5T_STD_I64LE, H5T_NATIVE_INT64, rows, integers->data());
  if (const auto* reals = std::get_if<std::vector<double>>(&column.values))
    return write_dataset(group, column.name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, rows, with_one_nan(*reals).data());
  const auto& texts = std::get<std::vector<std::string>>(column.values);
  const std::size_t width = longest(texts);
  const Handle type = hdf5::text_type(width);
  return write_dataset(group, column.name, type, type, rows, padded(texts, width).data());
}

Handle write_table(hid_t parent, const std::string& name, const Table& table) {
  check_table(name, table);
  Handle group = hdf5::create_group(parent, name);
  for (const Column& column : table.columns) {
    const Handle dataset = write_values(group, column);
    write_attribute(dataset, "unit", column.unit);
    write_attribute(dataset, "description", column.description);
  }
  return group;
}

void write_axis_names(hid_t experiments, const Results& results) {
  for (const std::string& name : results.axis_names)
    MANYWORLDS_CHECK(results.experiments.find(name), "axis '{}' has no column", name);
  const std::size_t width = longest(results.axis_names);
  const Handle type = hdf5::text_type(width);
  const Handle space = hdf5::array_space(results.axis_names.size());
  const Handle attribute(H5Acreate2(experiments, "axes", type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         "H5Acreate2");
  if (!results.axis_names.empty())
    check(H5Awrite(attribute, type, padded(results.axis_names, width).data()), "H5Awrite");
}

void write_spec(hid_t file, const std::string& spec) {
  check_text(spec, "the spec");
  const Handle type = hdf5::text_type(spec.size());
  const Handle space = hdf5::scalar_space();
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate");
  check(H5Pset_obj_track_times(creation, false), "H5Pset_obj_track_times");
  const Handle dataset(H5Dcreate2(file, "spec", type, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose,
                       "H5Dcreate2");
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, spec.c_str()), "H5Dwrite");
}

std::string image(const Results& results) {
  const Handle file = hdf5::create_in_memory();
  write_attribute(file, "format_version", kResultsFormatVersion);
  write_attribute(file, "generator", std::string("manyworlds"));
  write_attribute(file, "generator_version", std::string(core::version()));
  write_spec(file, results.spec);
  write_axis_names(write_table(file, "experiments", results.experiments), results);
  write_table(file, "excluded", results.excluded);
  const Handle subsimulations = hdf5::create_group(file, "subsimulations");
  write_table(subsimulations, "kernels", results.kernels);
  write_table(subsimulations, "collectives", results.collectives);
  write_table(subsimulations, "episodes", results.episodes);
  const Handle provenance = hdf5::create_group(file, "provenance");
  for (const Attribute& attribute : results.provenance)
    std::visit([&](const auto& value) { write_attribute(provenance, attribute.name, value); }, attribute.value);
  return hdf5::image_of(file);
}

}  // namespace

void write_results(const std::filesystem::path& path, const Results& results) {
  const hdf5::ErrorStackSilencer silence;
  std::string bytes;
  try {
    bytes = image(results);
  } catch (const hdf5::Failure& failure) {
    throw core::InternalError(fmt::format("the results for {}: {}", path.string(), failure.what()));
  }
  seal(bytes);
  write_atomically(path, bytes, Access::by_folder);
}

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  check(H5get_libversion(&major, &minor, &release), "H5get_libversion");
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace manyworlds::io
