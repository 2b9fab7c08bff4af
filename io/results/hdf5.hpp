// A small layer over HDF5's C interface: handles that close themselves, failures as exceptions, and files as byte
// strings, so that HDF5 itself never touches a disk.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::io::hdf5 {

/// A failed HDF5 call. The caller, who knows the file, turns it into an InputError or an InternalError.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class Result>
Result check(Result result, const char* call) {
  if (result < 0) throw Failure(fmt::format("HDF5's {} failed", call));
  return result;
}

class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t), const char* call) : id_(check(id, call)), closer_(closer) {}
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*closer_)(hid_t);
};

/// Keeps HDF5 from printing its error stack to stderr during its lifetime.
class ErrorStackSilencer {
 public:
  ErrorStackSilencer();
  ~ErrorStackSilencer();
  ErrorStackSilencer(const ErrorStackSilencer&) = delete;
  ErrorStackSilencer& operator=(const ErrorStackSilencer&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

Handle create_in_memory();
std::string image_of(hid_t file);
Handle open_image(std::string_view bytes);

/// Creates a group whose links are listed in the order of their creation.
Handle create_group(hid_t parent, const std::string& name);
Handle open_group(hid_t parent, const std::string& name);
Handle scalar_space();
Handle array_space(hsize_t size);
/// Returns the type of a fixed-length UTF-8 text of at least one byte, padded with NUL.
Handle text_type(std::size_t bytes);

}  // namespace manyworlds::io::hdf5
