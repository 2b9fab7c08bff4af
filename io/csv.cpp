#include "io/csv.hpp"

#include <cmath>

namespace manyworlds::io {

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

std::string field(const Column& column, std::size_t row) {
  if (column.is_text()) return quoted(column.text_at(row));
  return std::isnan(column.number_at(row)) ? "" : column.text_at(row);
}

}  // namespace

std::string csv(const Table& table) {
  std::string lines;
  for (std::size_t i = 0; i < table.columns.size(); ++i) lines += (i > 0 ? "," : "") + quoted(table.columns[i].name);
  lines += "\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) lines += (i > 0 ? "," : "") + field(table.columns[i], row);
    lines += "\n";
  }
  return lines;
}

}  // namespace manyworlds::io
