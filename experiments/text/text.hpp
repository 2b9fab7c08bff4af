// Text from untrusted sources: reads files, limits their size, checks that they are UTF-8, trims fields, and splits
// words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::import {

inline constexpr std::size_t kMaxTextBytes = 8u << 20;    // per file
inline constexpr std::size_t kMaxTableBytes = 64u << 20;  // per table of measurements

/// Returns the contents of a file, or of a pipe until its writer closes it. Throws InputError if the path is neither,
/// cannot be read, is a pipe without a writer, or holds more than `max_bytes` bytes.
std::string read_text(const std::string& path, std::size_t max_bytes = kMaxTextBytes);

/// Returns the contents of the file `name` in the folder of `path`; nothing if there is no such file.
std::optional<std::string> read_text_beside(const std::string& path, const std::string& name);

/// Returns the same of a file that may be compressed by gzip; `max_bytes` limits the text inside. Throws InputError
/// also if the compressed data are damaged.
std::string read_table_text(const std::string& path, std::size_t max_bytes = kMaxTableBytes);

/// Throws InputError if `bytes` exceeds kMaxTextBytes; `name` is the file name in messages.
void check_size(std::size_t bytes, const std::string& name);

/// Returns the length of the longest prefix of `text` that is valid: UTF-8 without control characters other than tabs
/// and line ends.
std::size_t valid_text_length(std::string_view text);

/// Throws InputError unless `text` is UTF-8 without control characters; `name` is the file name in messages.
void check_text(std::string_view text, const std::string& name);

/// Returns `text` without the characters of `blanks` at its beginning and end.
std::string_view trimmed(std::string_view text, std::string_view blanks);

/// Returns the words of `text` between any of `blanks`; `text` must outlive them.
std::vector<std::string_view> words_of(std::string_view text, std::string_view blanks = " \t\n\v\f\r");

}  // namespace manyworlds::experiments::import
