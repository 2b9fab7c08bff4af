// Tables of named, described columns: the form of results between the code that computes them, the results file, and
// its readers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace manyworlds::io {

/// In the order of the alternatives of Column::values.
enum class ElementType : std::uint8_t { integer, real, text };
inline const char* name_of(ElementType type) {
  constexpr std::array<const char*, 3> kNames{"integer", "real", "text"};
  return kNames[static_cast<std::size_t>(type)];
}

struct Column {
  std::string name;
  std::string unit;  // "s", "bytes", "tokens/s", …; "" for counts, ratios and text
  std::string description;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;

  std::size_t rows() const {
    return std::visit([](const auto& all) { return all.size(); }, values);
  }
  /// Returns the value as a number; NaN for text columns.
  double number_at(std::size_t row) const {
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&values))
      return static_cast<double>((*integers)[row]);
    if (const auto* reals = std::get_if<std::vector<double>>(&values)) return (*reals)[row];
    return std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns the value as text: numbers with the fewest digits that identify them.
  std::string text_at(std::size_t row) const;
  ElementType type() const { return static_cast<ElementType>(values.index()); }
  bool is_text() const { return std::holds_alternative<std::vector<std::string>>(values); }
};

/// Every column has the same number of rows; names are unique and contain no '/'.
struct Table {
  std::vector<Column> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().rows(); }
  const Column* find(std::string_view name) const {
    for (const Column& column : columns)
      if (column.name == name) return &column;
    return nullptr;
  }
  /// Returns text_at() of that column; "" if there is no such column.
  std::string text_at(std::string_view column, std::size_t row) const;
  /// Returns in how many rows each text occurs in that column.
  std::map<std::string, std::size_t> counts_of(std::string_view column) const;
};

}  // namespace manyworlds::io
