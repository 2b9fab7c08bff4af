// Where a text stops being JSON (RFC 8259), in words: what is there, and what would be right.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::experiments::import {

struct JsonFault {
  std::size_t at = 0;  // byte of the text, from 0
  std::string what;
};

/// Returns the first fault of a text; nothing if its syntax is right. Bytes above 127 and the ranges of numbers are not
/// looked at.
std::optional<JsonFault> find_json_fault(std::string_view text);

/// A place in a text, both counted from 1; columns are characters, if the text is UTF-8.
struct LineColumn {
  int line = 1, column = 1;
};
LineColumn place_of(std::string_view text, std::size_t at);

}  // namespace manyworlds::experiments::import
