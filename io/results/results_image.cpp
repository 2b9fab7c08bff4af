#include "io/results/results_image.hpp"

#include <algorithm>

#include "io/results/hdf5.hpp"
#include "io/results/results_stream.hpp"

namespace manyworlds::io {

namespace {

using hdf5::check;
using hdf5::Handle;

constexpr std::uint64_t kSlabBytes = std::uint64_t{1} << 20;  // read at a time

/// Checks that a name is a hard link: nothing in the file may lead out of it, or to another place in it.
void check_link(hid_t group, const std::string& name, const std::string& where) {
  if (name.empty() || name == "." || name.size() > kMaxNameBytes ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    throw InvalidResults(fmt::format("{} has an invalid column name", where));
  H5L_info_t link;
  check(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), "H5Lget_info");
  if (link.type != H5L_TYPE_HARD) throw InvalidResults(fmt::format("{} is a link to somewhere else", where));
}

Handle open_group(hid_t parent, const std::string& name, const std::string& where) {
  check_link(parent, name, where);
  return hdf5::open_group(parent, name);
}

struct Type {
  ElementType type;
  std::size_t width;  // in bytes
};

Type type_of(hid_t type, const std::string& where) {
  const std::size_t width = H5Tget_size(type);
  if (H5Tequal(type, H5T_STD_I64LE) > 0) return {ElementType::integer, width};
  if (H5Tequal(type, H5T_IEEE_F64LE) > 0) return {ElementType::real, width};
  if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && width > 0 &&
      H5Tequal(type, hdf5::text_type(width)) > 0)
    return {ElementType::text, width};
  throw InvalidResults(fmt::format(
      "an element of {} is neither a 64-bit integer, nor a 64-bit float, nor a text of fixed length", where));
}

Handle memory_type(const Type& type) {
  switch (type.type) {
    case ElementType::integer:
      return {H5Tcopy(H5T_NATIVE_INT64), H5Tclose, "H5Tcopy"};
    case ElementType::real:
      return {H5Tcopy(H5T_NATIVE_DOUBLE), H5Tclose, "H5Tcopy"};
    case ElementType::text:
      break;
  }
  return hdf5::text_type(type.width);
}

/// Returns the number of elements of a list or, if `scalar`, of a single value.
std::uint64_t elements_of(hid_t space, bool scalar, const std::string& where) {
  const H5S_class_t shape = H5Sget_simple_extent_type(space);
  if (scalar && shape == H5S_SCALAR) return 1;
  if (scalar || shape != H5S_SIMPLE || H5Sget_simple_extent_ndims(space) != 1)
    throw InvalidResults(fmt::format("{} is not a {}", where, scalar ? "single value" : "list"));
  hsize_t size = 0;
  check(H5Sget_simple_extent_dims(space, &size, nullptr), "H5Sget_simple_extent_dims");
  return size;
}

/// A stored column or text; the constructor checks that all of it was written.
class Dataset {
 public:
  Dataset(hid_t parent, const std::string& name, bool scalar, const std::string& where, const MemoryBudget& budget)
      : dataset_(open(parent, name, where)), creation_(H5Dget_create_plist(dataset_), H5Pclose, "H5Dget_create_plist") {
    check_storage(where);
    const Handle stored(H5Dget_type(dataset_), H5Tclose, "H5Dget_type");
    type_ = type_of(stored, where);
    const Handle space(H5Dget_space(dataset_), H5Sclose, "H5Dget_space");
    rows_ = elements_of(space, scalar, where);
    budget.check(rows_, type_.type == ElementType::text ? sizeof(std::string) : type_.width, where);
    budget.check(1, type_.width, where);
    check_allocated(space, where, budget);
  }

  hid_t id() const { return dataset_; }
  const Type& type() const { return type_; }
  std::uint64_t rows() const { return rows_; }

  /// Passes all elements to `take`, a slab of whole chunks at a time.
  template <class Take>
  void each_slab(const Take& take) const {
    const Handle memory = memory_type(type_), space(H5Dget_space(dataset_), H5Sclose, "H5Dget_space");
    const std::uint64_t chunks = std::max<std::uint64_t>(1, kSlabBytes / type_.width / chunk_);
    std::string slab;
    for (hsize_t at = 0; at < rows_;) {
      const hsize_t count = std::min<hsize_t>(rows_ - at, chunks * chunk_);
      slab.resize(static_cast<std::size_t>(count * type_.width));
      if (H5Sget_simple_extent_type(space) == H5S_SCALAR) {
        check(H5Dread(dataset_, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, slab.data()), "H5Dread");
      } else {
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, nullptr, &count, nullptr), "H5Sselect_hyperslab");
        check(H5Dread(dataset_, memory, hdf5::array_space(count), space, H5P_DEFAULT, slab.data()), "H5Dread");
      }
      take(slab);
      at += count;
    }
  }

 private:
  static Handle open(hid_t parent, const std::string& name, const std::string& where) {
    check_link(parent, name, where);
    return {H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2"};
  }

  /// Checks that the data lies in this file, and that it uses only the two filters that we use.
  void check_storage(const std::string& where) const {
    if (H5Pget_layout(creation_) == H5D_VIRTUAL || check(H5Pget_external_count(creation_), "H5Pget_external_count") > 0)
      throw InvalidResults(fmt::format("{} lies in another file", where));
    const int filters = check(H5Pget_nfilters(creation_), "H5Pget_nfilters");
    bool known = filters <= 2;
    H5Z_filter_t before = H5Z_FILTER_NONE;
    for (int i = 0; i < filters && known; ++i) {
      unsigned flags = 0, config = 0;
      std::size_t parameters = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(creation_, static_cast<unsigned>(i), &flags, &parameters, nullptr, 0, nullptr, &config);
      known = (filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_DEFLATE) && filter != before;
      before = filter;
    }
    if (!known) throw InvalidResults(fmt::format("{} is packed by other filters than shuffle and deflate", where));
  }

  /// Checks that every chunk was written: HDF5 fills in unwritten ones, which cost the file nothing.
  void check_allocated(hid_t space, const std::string& where, const MemoryBudget& budget) {
    if (rows_ == 0) return;
    bool whole = false;
    if (H5Pget_layout(creation_) == H5D_CHUNKED) {
      check(H5Pget_chunk(creation_, 1, &chunk_), "H5Pget_chunk");
      if (chunk_ == 0) throw InvalidResults(fmt::format("{} has chunks of size zero", where));
      budget.check(chunk_, type_.width, where);
      hsize_t chunks = 0;
      check(H5Dget_num_chunks(dataset_, space, &chunks), "H5Dget_num_chunks");
      whole = chunks == (rows_ - 1) / chunk_ + 1;
    } else {
      whole = H5Dget_storage_size(dataset_) == rows_ * type_.width;
    }
    if (!whole) throw InvalidResults(fmt::format("{} was never wholly written", where));
  }

  Handle dataset_, creation_;
  Type type_{};
  std::uint64_t rows_ = 0;
  hsize_t chunk_ = 1;  // rows that HDF5 unpacks at once
};

/// All elements of an attribute, each of `type.width` bytes.
struct AttributeValues {
  Type type;
  std::uint64_t count;
  std::string packed;

  std::string text(std::uint64_t i) const {
    const std::string padded = packed.substr(static_cast<std::size_t>(i) * type.width, type.width);
    return padded.substr(0, padded.find('\0'));
  }
  template <class Number>
  Number number() const {
    Number value;
    std::copy_n(packed.data(), sizeof value, reinterpret_cast<char*>(&value));
    return value;
  }
};

AttributeValues read_attribute(hid_t attribute, bool scalar, const std::string& where, const MemoryBudget& budget) {
  const Handle stored(H5Aget_type(attribute), H5Tclose, "H5Aget_type");
  const Handle space(H5Aget_space(attribute), H5Sclose, "H5Aget_space");
  const Type type = type_of(stored, where);
  const std::uint64_t count = elements_of(space, scalar, where);
  budget.check(count, type.width, where);
  AttributeValues values{type, count, std::string(static_cast<std::size_t>(count * type.width), '\0')};
  if (count > 0) check(H5Aread(attribute, memory_type(type), values.packed.data()), "H5Aread");
  return values;
}

AttributeValues read_attribute(hid_t object, const std::string& name, ElementType type, bool scalar,
                               const std::string& owner, const MemoryBudget& budget) {
  const std::string where = fmt::format("attribute '{}' of {}", name, owner);
  if (check(H5Aexists(object, name.c_str()), "H5Aexists") == 0) throw InvalidResults(where + " is missing");
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, "H5Aopen");
  AttributeValues values = read_attribute(attribute, scalar, where, budget);
  if (values.type.type != type) throw InvalidResults(where + " has another type");
  return values;
}

/// Reads a name with a call that takes a buffer and its size and returns the length.
template <class Call>
std::string read_name(const Call& call, const std::string& where) {
  const auto size = static_cast<std::size_t>(call(nullptr, 0));
  if (size > kMaxNameBytes) throw InvalidResults(fmt::format("{} has a name of {} bytes", where, size));
  std::string name(size, '\0');
  call(name.data(), size + 1);
  return name;
}

class ImageReader {
 public:
  ImageReader(std::string_view image, const std::function<void(std::string_view)>& send)
      : budget_(image.size()), send_(send), file_(hdf5::open_image(image)) {}

  void read() {
    if (text_of(file_, "generator", "the file") != "manyworlds")
      throw InvalidResults("it was written by another program");
    const auto version =
        read_attribute(file_, "format_version", ElementType::integer, true, "the file", budget_).number<std::int64_t>();
    send_(results_message::format_version(version));
    if (version != kResultsFormatVersion) return;
    read_spec();
    const auto tables = result_tables(Results{});
    for (std::size_t i = 0; i < tables.size(); ++i) read_table(i, tables[i].first);
    read_axes();
    read_provenance();
    send_(results_message::end());
  }

 private:
  std::string text_of(hid_t object, const std::string& name, const std::string& owner) const {
    return read_attribute(object, name, ElementType::text, true, owner, budget_).text(0);
  }

  void read_spec() {
    const Dataset spec(file_, "spec", true, "/spec", budget_);
    if (spec.type().type != ElementType::text) throw InvalidResults("/spec is not a text");
    spec.each_slab([&](std::string_view padded) { send_(results_message::spec(padded.substr(0, padded.find('\0')))); });
  }

  void read_table(std::size_t number, const std::string& path) {
    const std::size_t slash = path.find('/');
    if (slash == std::string::npos) return read_columns(number, path, open_group(file_, path, path));
    const Handle parent = open_group(file_, path.substr(0, slash), path);
    read_columns(number, path, open_group(parent, path.substr(slash + 1), path));
  }

  void read_columns(std::size_t number, const std::string& path, const Handle& group) {
    H5G_info_t info;
    check(H5Gget_info(group, &info), "H5Gget_info");
    if (info.nlinks > kMaxColumns) throw InvalidResults(fmt::format("{} has more than {} columns", path, kMaxColumns));
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      const std::string name = read_name(
          [&](char* to, std::size_t size) {
            return check(H5Lget_name_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, to, size, H5P_DEFAULT),
                         "H5Lget_name_by_idx");
          },
          fmt::format("column {} of {}", i, path));
      read_column(number, group, name, path + "/" + name);
    }
  }

  void read_column(std::size_t table, hid_t group, const std::string& name, const std::string& where) try {
    const Dataset dataset(group, name, false, where, budget_);
    const Column heading{name, text_of(dataset.id(), "unit", where), text_of(dataset.id(), "description", where), {}};
    send_(results_message::column(table, heading, dataset.type().type, dataset.rows()));
    dataset.each_slab([&](std::string_view slab) { send_(results_message::values(slab, dataset.type().width)); });
  } catch (const hdf5::Failure& failure) {
    throw InvalidResults(fmt::format("{}: {}", where, failure.what()));
  }

  void read_axes() {
    const Handle group = open_group(file_, "experiments", "experiments");
    const AttributeValues axes = read_attribute(group, "axes", ElementType::text, false, "experiments", budget_);
    for (std::uint64_t i = 0; i < axes.count; ++i) send_(results_message::axis(axes.text(i)));
  }

  void read_provenance() {
    const Handle group = open_group(file_, "provenance", "provenance");
    H5O_info_t info;
    check(H5Oget_info2(group, &info, H5O_INFO_NUM_ATTRS), "H5Oget_info2");
    if (info.num_attrs > kMaxProvenanceEntries)
      throw InvalidResults(fmt::format("provenance has more than {} attributes", kMaxProvenanceEntries));
    for (hsize_t i = 0; i < info.num_attrs; ++i) {
      const Handle attribute(H5Aopen_by_idx(group, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose, "H5Aopen_by_idx");
      const std::string name =
          read_name([&](char* to, std::size_t size) { return check(H5Aget_name(attribute, size, to), "H5Aget_name"); },
                    "a fact of provenance");
      send_(results_message::provenance_entry(
          {name, provenance_value(read_attribute(attribute, true, "provenance/" + name, budget_))}));
    }
  }

  static decltype(Attribute::value) provenance_value(const AttributeValues& values) {
    switch (values.type.type) {
      case ElementType::integer:
        return values.number<std::int64_t>();
      case ElementType::real:
        return values.number<double>();
      case ElementType::text:
        break;
    }
    return values.text(0);
  }

  MemoryBudget budget_;
  const std::function<void(std::string_view)>& send_;
  Handle file_;
};

}  // namespace

void send_image(std::string_view image, const std::function<void(std::string_view)>& send) {
  const hdf5::ErrorStackSilencer silence;
  try {
    ImageReader(image, send).read();
  } catch (const InvalidResults& refusal) {
    send(results_message::refusal(refusal.what()));
  } catch (const hdf5::Failure& failure) {
    send(results_message::refusal(failure.what()));
  }
}

}  // namespace manyworlds::io
