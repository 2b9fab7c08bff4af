// Tables as columns with a name, a unit and a sentence: how results look between those who compute them, the results
// file, and those who read it.
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

/// In the order of Column::values.
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
  /// The value as a number; NaN in columns of text.
  double number_at(std::size_t row) const {
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&values))
      return static_cast<double>((*integers)[row]);
    if (const auto* reals = std::get_if<std::vector<double>>(&values)) return (*reals)[row];
    return std::numeric_limits<double>::quiet_NaN();
  }
  /// The value as text: numbers as briefly as they can be told apart.
  std::string text_at(std::size_t row) const;
  ElementType type() const { return static_cast<ElementType>(values.index()); }
  bool is_text() const { return std::holds_alternative<std::vector<std::string>>(values); }
};

/// Every column has the same number of rows; names are unique and hold no '/'.
struct Table {
  std::vector<Column> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().rows(); }
  const Column* find(std::string_view name) const {
    for (const Column& column : columns)
      if (column.name == name) return &column;
    return nullptr;
  }
  /// What text_at() of that column says; "" where there is none.
  std::string text_at(std::string_view column, std::size_t row) const;
  /// In how many rows a text stands in that column.
  std::map<std::string, std::size_t> counts_of(std::string_view column) const;
};

}  // namespace manyworlds::io
