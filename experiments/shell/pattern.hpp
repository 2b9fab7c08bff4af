// Patterns of `case`, [[ ]] and ${name%pattern}: *, ? and [characters].
#pragma once

#include <string_view>

namespace manyworlds::experiments::shell {

/// Returns whether a pattern matches a whole text. A backslash takes the next character as it is.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace manyworlds::experiments::shell
