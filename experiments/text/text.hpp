// Text that others wrote: how it is read, how much of it, and that it is text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace manyworlds::experiments::import {

inline constexpr std::size_t kMaximumTextBytes = 8u << 20;  // of one file

/// The bytes of a file that a user gave us, or of a pipe until its writer closes it. What is no such thing, cannot be
/// read, is a pipe that nobody writes to, or is larger than kMaximumTextBytes is an InputError.
std::string read_text(const std::string& path);

/// Throws InputError for a text that is larger than kMaximumTextBytes. `name` stands for the file in messages.
void check_size(std::size_t bytes, const std::string& name);

/// How many bytes of `text` come before the first that is no text: not UTF-8, or a control character other than a tab
/// and the ends of lines.
std::size_t text_length(std::string_view text);

/// Throws InputError unless `text` is UTF-8 without control characters.
void check_text(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
