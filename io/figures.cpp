#include "io/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace manyworlds::io {

std::string with_prefix(double value, const std::string& unit) {
  struct Prefix {
    double scale;
    const char* name;
  };
  constexpr std::array<Prefix, 9> kPrefixes{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}}};
  const Prefix* prefix = &kPrefixes[4];
  if (value != 0)
    prefix = std::find_if(kPrefixes.begin(), kPrefixes.end() - 1,
                          [&](const Prefix& each) { return std::abs(value) >= each.scale * 0.99995; });
  const double scaled = value / prefix->scale;
  const double size = std::abs(scaled) * 1.00005;
  const int decimals = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  const std::string suffix = prefix->name + unit;
  return fmt::format("{:.{}f}{}{}", scaled, decimals, suffix.empty() ? "" : " ", suffix);
}

bool is_share(const Column& column) {
  return column.name == "mfu" || column.name.ends_with("_share") || column.name.starts_with("time_by_");
}

std::string shown_value(const Column& column, double value) {
  if (std::isnan(value)) return kMissing;
  if (column.unit == "bytes") return fmt::format("{:.1f} GiB", value / (1 << 30));
  if (is_share(column)) return fmt::format("{:.1f} %", value * 100);
  if (column.unit == "USD") return fmt::format("{:#.3g} USD", value);
  return with_prefix(value, column.unit == "s" || column.unit == "J/token" ? column.unit : "");
}

std::string shown(const Column* column, std::size_t row) {
  if (column == nullptr) return kMissing;
  return column->is_text() ? column->text_at(row) : shown_value(*column, column->number_at(row));
}

std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3 && digits[at - 4] != '-';) digits.insert(at -= 3, ",");
  return digits;
}

std::size_t places(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace manyworlds::io
