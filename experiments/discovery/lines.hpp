// Lines and numbers of the plain text that tools print.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/number_in.hpp"

namespace manyworlds::experiments::clusters {

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

/// Returns the words between blanks.
std::vector<std::string_view> words_of(std::string_view line);

using core::number_in;

/// Returns what stands in the first pair of double quotes; nothing if there is none.
std::optional<std::string_view> quoted_in(std::string_view line);

}  // namespace manyworlds::experiments::clusters
