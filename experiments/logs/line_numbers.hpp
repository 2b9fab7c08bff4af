// Numbers behind the words of a log's line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace manyworlds::experiments::logs {

/// Returns the number at the beginning of `text`, behind blanks, with commas between its digits if it has them; nothing
/// if there is none or it is not finite.
std::optional<double> number_at(std::string_view text);
/// The same behind the first place where `key` stands in `line`.
std::optional<double> number_after(std::string_view line, std::string_view key);
/// The same as an integer; nothing if it is none or beyond 2^53.
std::optional<std::int64_t> integer_after(std::string_view line, std::string_view key);

}  // namespace manyworlds::experiments::logs
