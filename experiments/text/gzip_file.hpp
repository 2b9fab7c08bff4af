// A file that may be compressed by gzip, read piece by piece: nothing of it is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct gzFile_s;  // of zlib

namespace manyworlds::experiments::import {

class GzipFile {
 public:
  /// Opens a file; `give` says in a message what belongs there instead of a folder, as in "the file of a log". Throws
  /// InputError if it is a folder or cannot be read.
  GzipFile(const std::string& path, const char* give);

  /// Reads at most `max_bytes` bytes of the text inside; returns 0 at its end. Throws InputError if the file cannot be
  /// read or its compressed data are damaged.
  std::size_t read(char* to, std::size_t max_bytes);
  /// Returns how many bytes of the file, as it lies on the disk, have been read.
  std::int64_t offset() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  [[noreturn]] void fail() const;

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace manyworlds::experiments::import
