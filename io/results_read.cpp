// Reads a results file back. The seal is checked before HDF5 sees a byte, since HDF5 trusts what it reads.
#include <new>

#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "io/results.hpp"
#include "io/sealed.hpp"

namespace manyworlds::io {

namespace {

using hdf5::check;
using hdf5::Failure;
using hdf5::Handle;

enum class Type { integer, real, text };

Type type_of(hid_t type) {
  const H5T_class_t type_class = check(H5Tget_class(type), "H5Tget_class");
  const std::size_t size = H5Tget_size(type);
  if (type_class == H5T_INTEGER && size == 8) return Type::integer;
  if (type_class == H5T_FLOAT && size == 8) return Type::real;
  if (type_class == H5T_STRING && H5Tis_variable_str(type) == 0 && size > 0) return Type::text;
  throw Failure("an element is neither a 64-bit integer, nor a 64-bit float, nor a text of fixed length");
}

std::size_t elements_of(hid_t space) {
  return static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space), "H5Sget_simple_extent_npoints"));
}

std::vector<std::string> split(const std::string& packed, std::size_t width) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < packed.size(); begin += width) {
    std::string text = packed.substr(begin, width);
    texts.push_back(text.substr(0, text.find('\0')));
  }
  return texts;
}

/// All elements, by a function that reads `count` elements of a memory type into a buffer.
template <class Read>
decltype(Column::values) read_elements(hid_t type, std::size_t count, const Read& read) {
  switch (type_of(type)) {
    case Type::integer: {
      std::vector<std::int64_t> values(count);
      if (count > 0) read(H5T_NATIVE_INT64, values.data());
      return values;
    }
    case Type::real: {
      std::vector<double> values(count);
      if (count > 0) read(H5T_NATIVE_DOUBLE, values.data());
      return values;
    }
    case Type::text:
      break;
  }
  const std::size_t width = H5Tget_size(type);
  std::string packed(count * width, '\0');
  if (count > 0) read(hdf5::text_type(width), packed.data());
  return split(packed, width);
}

decltype(Column::values) read_attribute(hid_t attribute) {
  const Handle type(H5Aget_type(attribute), H5Tclose, "H5Aget_type");
  const Handle space(H5Aget_space(attribute), H5Sclose, "H5Aget_space");
  return read_elements(type, elements_of(space),
                       [&](hid_t memory_type, void* to) { check(H5Aread(attribute, memory_type, to), "H5Aread"); });
}

decltype(Column::values) read_dataset(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "H5Dget_type");
  const Handle space(H5Dget_space(dataset), H5Sclose, "H5Dget_space");
  return read_elements(type, elements_of(space), [&](hid_t memory_type, void* to) {
    check(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), "H5Dread");
  });
}

template <class Value>
std::vector<Value> read_attribute(hid_t object, const std::string& name) {
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "H5Aopen");
  auto values = read_attribute(attribute);
  auto* wanted = std::get_if<std::vector<Value>>(&values);
  if (!wanted) throw Failure(fmt::format("attribute '{}' has another type", name));
  return std::move(*wanted);
}

template <class Value>
Value read_single(hid_t object, const std::string& name) {
  auto values = read_attribute<Value>(object, name);
  if (values.size() != 1) throw Failure(fmt::format("attribute '{}' is no single value", name));
  return std::move(values.front());
}

Handle open_dataset(hid_t parent, const std::string& name) {
  return {H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2"};
}

std::string link_name(hid_t group, hsize_t index) {
  const auto call = [&](char* to, std::size_t size) {
    return static_cast<std::size_t>(
        check(H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, index, to, size, H5P_DEFAULT),
              "H5Lget_name_by_idx"));
  };
  std::string name(call(nullptr, 0), '\0');
  call(name.data(), name.size() + 1);
  return name;
}

Table read_table(hid_t parent, const std::string& name) {
  const Handle group = hdf5::open_group(parent, name);
  H5G_info_t info;
  check(H5Gget_info(group, &info), "H5Gget_info");
  Table table;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    Column column;
    column.name = link_name(group, i);
    const Handle dataset = open_dataset(group, column.name);
    column.unit = read_single<std::string>(dataset, "unit");
    column.description = read_single<std::string>(dataset, "description");
    column.values = read_dataset(dataset);
    table.columns.push_back(std::move(column));
    if (table.columns.back().rows() != table.rows())
      throw Failure(fmt::format("the columns of {} differ in length", name));
  }
  return table;
}

std::vector<Attribute> read_provenance(hid_t file) {
  const Handle group = hdf5::open_group(file, "provenance");
  H5O_info_t info;
  check(H5Oget_info2(group, &info, H5O_INFO_NUM_ATTRS), "H5Oget_info2");
  std::vector<Attribute> all;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Handle attribute(H5Aopen_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose, "H5Aopen_by_idx");
    std::string name(static_cast<std::size_t>(check(H5Aget_name(attribute, 0, nullptr), "H5Aget_name")), '\0');
    check(H5Aget_name(attribute, name.size() + 1, name.data()), "H5Aget_name");
    const auto values = read_attribute(attribute);
    std::visit(
        [&](const auto& elements) {
          if (elements.size() != 1) throw Failure(fmt::format("/provenance has '{}' with other than one value", name));
          all.push_back({name, elements.front()});
        },
        values);
  }
  return all;
}

std::string read_spec(hid_t file) {
  auto values = read_dataset(open_dataset(file, "spec"));
  const auto* texts = std::get_if<std::vector<std::string>>(&values);
  if (!texts || texts->size() != 1) throw Failure("/spec is no text");
  return texts->front();
}

Results read_image(std::string_view bytes, const std::string& path) {
  const Handle file = hdf5::open_image(bytes);
  if (read_single<std::string>(file, "generator") != "manyworlds") throw Failure("it is of another program");
  const auto version = read_single<std::int64_t>(file, "format_version");
  if (version != kResultsFormatVersion)
    throw core::InputError(fmt::format("{}: results of format version {}; this build reads version {}", path, version,
                                       kResultsFormatVersion));
  Results results;
  results.spec = read_spec(file);
  for (auto& [name, table] : answer_tables(results)) *table = read_table(file, name);
  results.axis_names = read_attribute<std::string>(hdf5::open_group(file, "experiments"), "axes");
  for (const std::string& axis : results.axis_names)
    if (!results.experiments.find(axis)) throw Failure(fmt::format("axis '{}' has no column", axis));
  results.provenance = read_provenance(file);
  return results;
}

}  // namespace

Results read_results(const std::filesystem::path& path) {
  const hdf5::Silence silence;
  const std::string sealed = read_file(path);
  const auto bytes = unseal(sealed);
  if (!bytes)
    throw core::InputError(
        fmt::format("{}: not a results file of manyworlds, or cut short or changed since it was "
                    "written (its seal does not fit)",
                    path.string()));
  try {
    return read_image(*bytes, path.string());
  } catch (const Failure& failure) {
    throw core::InputError(fmt::format("{}: not a results file of manyworlds: {}", path.string(), failure.what()));
  } catch (const std::bad_alloc&) {
    throw core::InputError(fmt::format("{}: holds more than this machine's memory does", path.string()));
  }
}

}  // namespace manyworlds::io
