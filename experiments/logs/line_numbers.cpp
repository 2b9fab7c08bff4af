#include "experiments/logs/line_numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace manyworlds::experiments::logs {
namespace {

constexpr double kLargestInteger = 9'007'199'254'740'992;  // 2^53

}  // namespace

std::optional<double> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::array<char, 40> digits{};  // a comma is no part of a number for from_chars
  std::size_t size = 0;
  for (std::size_t at = 0; at < text.size() && size < digits.size(); ++at) {
    const bool between_digits = at > 0 && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9';
    if (text[at] == ',' && between_digits) continue;
    digits[size++] = text[at];
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + size, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(line.substr(at + key.size()));
}

std::optional<std::int64_t> integer_after(std::string_view line, std::string_view key) {
  const auto value = number_after(line, key);
  if (!value || std::abs(*value) > kLargestInteger || *value != std::trunc(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace manyworlds::experiments::logs
