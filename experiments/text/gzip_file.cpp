#include "experiments/text/gzip_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {

using core::InputError;

namespace {
constexpr unsigned kBuffer = 1u << 20;
}

void GzipFile::Close::operator()(gzFile_s* file) const {
  gzclose(file);
}

GzipFile::GzipFile(const std::string& path, const char* give) : path_(path) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) fail();
  if (S_ISDIR(status.st_mode)) throw InputError(fmt::format("is a folder; give {}", give), path_);
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (file_ == nullptr) fail();
  gzbuffer(file_.get(), kBuffer);
}

void GzipFile::fail() const {
  throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path_);
}

std::size_t GzipFile::read(char* to, std::size_t max_bytes) {
  const int bytes = gzread(file_.get(), to, static_cast<unsigned>(max_bytes));
  int code = Z_OK;
  gzerror(file_.get(), &code);
  if (code == Z_ERRNO) fail();
  if (bytes < 0 || (bytes == 0 && code == Z_BUF_ERROR))
    throw InputError(fmt::format("its compressed data are damaged behind byte {} of its text",
                                 static_cast<std::int64_t>(gztell(file_.get()))),
                     path_);
  return static_cast<std::size_t>(bytes);
}

std::int64_t GzipFile::offset() const {
  return static_cast<std::int64_t>(gzoffset(file_.get()));
}

}  // namespace manyworlds::experiments::import
