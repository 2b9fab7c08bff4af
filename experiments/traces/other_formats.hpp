// Files that people have beside those that are read, known so that a refusal says what they are and what would be read.
#pragma once

#include <string>
#include <string_view>

namespace manyworlds::experiments::traces {

/// Returns what a file of another format is and what to do, as a message goes on behind the file's name; empty if it is
/// none that is known. `head` are its first 64 KiB, unpacked if it is compressed by gzip.
std::string other_format(const std::string& path, std::string_view head);

}  // namespace manyworlds::experiments::traces
