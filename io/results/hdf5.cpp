#include "io/results/hdf5.hpp"

#include <algorithm>

namespace manyworlds::io::hdf5 {

namespace {

/// The file keeps the oldest superblock: H5Fget_file_image() of HDF5 1.10 zeroes the flags of newer ones without
/// updating their checksum. Objects that track their creation order use the newer layout all the same, in which
/// attributes may have any size.
Handle memory_access() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate");
  check(H5Pset_fapl_core(access, std::size_t{1} << 20, false), "H5Pset_fapl_core");
  check(H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "H5Pset_libver_bounds");
  return access;
}

constexpr unsigned kCreationOrder = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

}  // namespace

ErrorStackSilencer::ErrorStackSilencer() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

ErrorStackSilencer::~ErrorStackSilencer() {
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}

Handle create_in_memory() {
  const Handle access = memory_access();
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "H5Pcreate");
  check(H5Pset_obj_track_times(creation, false), "H5Pset_obj_track_times");
  check(H5Pset_link_creation_order(creation, kCreationOrder), "H5Pset_link_creation_order");
  check(H5Pset_attr_creation_order(creation, kCreationOrder), "H5Pset_attr_creation_order");
  return {H5Fcreate("in memory", H5F_ACC_TRUNC, creation, access), H5Fclose, "H5Fcreate"};
}

std::string image_of(hid_t file) {
  check(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
  const auto size = check(H5Fget_file_image(file, nullptr, 0), "H5Fget_file_image");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  check(H5Fget_file_image(file, bytes.data(), bytes.size()), "H5Fget_file_image");
  return bytes;
}

Handle open_image(std::string_view bytes) {
  const Handle access = memory_access();
  // HDF5 copies the bytes; the parameter is not const because of its other modes.
  check(H5Pset_file_image(access, const_cast<char*>(bytes.data()), bytes.size()), "H5Pset_file_image");
  return {H5Fopen("in memory", H5F_ACC_RDONLY, access), H5Fclose, "H5Fopen"};
}

Handle create_group(hid_t parent, const std::string& name) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "H5Pcreate");
  check(H5Pset_obj_track_times(creation, false), "H5Pset_obj_track_times");
  check(H5Pset_link_creation_order(creation, kCreationOrder), "H5Pset_link_creation_order");
  check(H5Pset_attr_creation_order(creation, kCreationOrder), "H5Pset_attr_creation_order");
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT), H5Gclose, "H5Gcreate2"};
}

Handle open_group(hid_t parent, const std::string& name) {
  return {H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "H5Gopen2"};
}

Handle scalar_space() {
  return {H5Screate(H5S_SCALAR), H5Sclose, "H5Screate"};
}
Handle array_space(hsize_t size) {
  return {H5Screate_simple(1, &size, nullptr), H5Sclose, "H5Screate_simple"};
}

Handle text_type(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "H5Tcopy");
  check(H5Tset_size(type, std::max<std::size_t>(bytes, 1)), "H5Tset_size");
  check(H5Tset_strpad(type, H5T_STR_NULLPAD), "H5Tset_strpad");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

}  // namespace manyworlds::io::hdf5
