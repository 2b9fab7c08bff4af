#include "io/results/csv.hpp"

#include "core/base/escape.hpp"
#include "io/results/known_value.hpp"

namespace manyworlds::io {

namespace {

std::string field(const Column& column, std::size_t row) {
  if (column.is_text()) return core::csv_field(column.text_at(row));
  return is_known(column, row) ? column.text_at(row) : "";
}

}  // namespace

std::string csv(const Table& table) {
  std::string lines;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    lines += (i > 0 ? "," : "") + core::csv_field(table.columns[i].name);
  lines += "\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) lines += (i > 0 ? "," : "") + field(table.columns[i], row);
    lines += "\n";
  }
  return lines;
}

}  // namespace manyworlds::io
