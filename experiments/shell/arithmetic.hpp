// Bash arithmetic, $(( )): 64-bit integers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace manyworlds::experiments::shell {

/// Returns the value of an expression in which parameters are already expanded; `value_of` returns that of a variable
/// by its name. Nothing if it has assignments, leaves 64 bits, divides by zero, or is not understood.
std::optional<std::int64_t> arithmetic_value(
    const std::string& text, const std::function<std::optional<std::int64_t>(const std::string&)>& value_of);

/// Returns a whole text as an integer.
std::optional<std::int64_t> integer_of(const std::string& text);

}  // namespace manyworlds::experiments::shell
