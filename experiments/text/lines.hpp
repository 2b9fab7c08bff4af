// Lines of a text.
#pragma once

#include <string_view>

namespace manyworlds::experiments::import {

/// Calls `visit` with each line, without its end, and its number.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line, number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace manyworlds::experiments::import
