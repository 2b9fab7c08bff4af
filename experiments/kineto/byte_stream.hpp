// The bytes of a file that may be compressed by gzip, as a stream that never holds more than a buffer of them.
#pragma once

#include <cstdint>
#include <functional>
#include <streambuf>
#include <string>
#include <vector>

#include "experiments/text/gzip_file.hpp"

namespace manyworlds::experiments::kineto {

class ByteStream : public std::streambuf {
 public:
  /// Is told how many bytes of the file, as it lies on the disk, have been read.
  using Progress = std::function<void(const std::string& path, std::int64_t bytes)>;

  /// Throws core::InputError, as reading does, if the file cannot be read or its compressed data are damaged.
  explicit ByteStream(std::string path, Progress progress = {});

 protected:
  int_type underflow() override;

 private:
  std::string path_;
  Progress progress_;
  import::GzipFile file_;
  std::vector<char> buffer_;
};

}  // namespace manyworlds::experiments::kineto
