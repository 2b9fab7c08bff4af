#include "experiments/measured_collectives/published_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "experiments/measured/tables.hpp"
#include "experiments/measured_collectives/published_collectives.hpp"
#include "experiments/nccl/nccl_inspector.hpp"
#include "experiments/nccl/nccl_tests.hpp"

namespace manyworlds::experiments::measured {
namespace {

using import::CsvHeader;
using import::CsvRow;
using import::CsvTable;

/// One of our columns: a text in which {} is the field of their column `from` and {line} the line.
struct PublishedColumn {
  std::string column, from, text;
};
using PublishedTable = std::vector<PublishedColumn>;

std::map<std::string, PublishedTable> read_published_tables() {
  std::map<std::string, PublishedTable> tables;
  for (const CsvRow& row : import::parse_csv(compiled_table("published_columns"), "published_columns.csv").rows)
    tables[std::string(row.text("table"))].push_back(
        {std::string(row.text("column")), std::string(row.text("from")), std::string(row.text("text"))});
  return tables;
}

bool has_all_columns(const CsvHeader& header, const PublishedTable& published) {
  return std::all_of(published.begin(), published.end(),
                     [&](const PublishedColumn& one) { return one.from.empty() || header.has(one.from); });
}

std::string filled(std::string text, std::string_view hole, std::string_view with) {
  if (const auto at = text.find(hole); at != std::string::npos) text.replace(at, hole.size(), with);
  return text;
}

/// Returns the text of a field, which is empty if theirs is; yes and no are our true and false.
std::string field_of(const PublishedColumn& column, const CsvRow& row) {
  std::string_view field = row.text(column.from);
  if (field == "yes" || field == "no") field = field == "yes" ? "true" : "false";
  if (!column.from.empty() && field.empty()) return {};
  return filled(filled(column.text, "{}", field), "{line}", std::to_string(row.line()));
}

CsvTable with_known_columns(const CsvTable& table) {
  static const std::map<std::string, PublishedTable> published_tables = read_published_tables();
  for (const auto& [name, published] : published_tables) {
    if (!has_all_columns(*table.header, published)) continue;
    auto header = std::make_shared<CsvHeader>();
    header->file = table.header->file;
    for (const PublishedColumn& column : published) {
      header->column_index.emplace(column.column, header->names.size());
      header->names.push_back(column.column);
    }
    CsvTable result{header, {}};
    for (const CsvRow& row : table.rows) {
      std::vector<std::string> fields;
      for (const PublishedColumn& column : published) fields.push_back(field_of(column, row));
      result.rows.emplace_back(header, std::move(fields), row.line());
    }
    return result;
  }
  return table;
}

}  // namespace

CsvTable parse_measurements(std::string_view text, const std::string& name, const std::string& gpu) {
  const bool is_log = import::is_nccl_inspector(text);
  if (!is_log && !import::is_nccl_tests(text)) return with_known_columns(import::parse_csv(text, name));
  std::vector<import::NcclTestRow> rows =
      is_log ? import::parse_nccl_inspector(text, name) : import::parse_nccl_tests(text, name);
  for (import::NcclTestRow& row : rows)
    if (row.device.empty()) row.device = gpu;
  return as_collectives(rows, name);
}

}  // namespace manyworlds::experiments::measured
