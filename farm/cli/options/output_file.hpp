// A file that an option names to be written: whole or not at all, and compressed by gzip if its name ends in .gz.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "io/log/file.hpp"
#include "io/pictures/gzip.hpp"

namespace manyworlds::farm::commands {

class OutputFile {
 public:
  /// Throws core::IoError where `path` cannot be written; so do the other two functions.
  explicit OutputFile(const std::string& path);

  void append(std::string_view bytes);
  /// Writes what is left, renames the file into place and returns its size in bytes.
  std::uint64_t commit();

 private:
  io::AtomicFile file_;
  std::uint64_t bytes_ = 0;
  std::optional<io::GzipStream> compressed_;
};

/// Writes such a file through a stream, and returns its size in bytes. Throws core::IoError, and what `write` throws;
/// no file is left then.
std::uint64_t write_output(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace manyworlds::farm::commands
