#include "experiments/kineto/byte_stream.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::kineto {

using core::InputError;

namespace {
constexpr std::size_t kBuffer = 1u << 20;
}

ByteStream::ByteStream(std::string path, Progress progress)
    : path_(std::move(path)), progress_(std::move(progress)), buffer_(kBuffer) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) fail(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw InputError("is a folder; give the trace file of each rank", path_);
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (file_ == nullptr) fail(std::strerror(errno));
  gzbuffer(file_.get(), static_cast<unsigned>(kBuffer));
}

void ByteStream::fail(const char* why) const {
  throw InputError(fmt::format("cannot be read: {}", why), path_);
}

ByteStream::int_type ByteStream::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  const int bytes = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  gzerror(file_.get(), &code);
  if (code == Z_ERRNO) fail(std::strerror(errno));
  if (bytes < 0 || (bytes == 0 && code == Z_BUF_ERROR))
    throw InputError(fmt::format("its compressed data are torn or damaged behind byte {} of its text",
                                 static_cast<std::int64_t>(gztell(file_.get()))),
                     path_);
  if (progress_) progress_(path_, static_cast<std::int64_t>(gzoffset(file_.get())));
  if (bytes == 0) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + bytes);
  return traits_type::to_int_type(*gptr());
}

}  // namespace manyworlds::experiments::kineto
