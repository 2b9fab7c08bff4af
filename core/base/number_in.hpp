// A number that is a whole text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace manyworlds::core {

/// Returns a number if the whole text is one of this type, in the C locale; nothing otherwise. A floating-point number
/// may be infinite or none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace manyworlds::core
