// Comma-separated tables as spreadsheets write them (RFC 4180): a header with column names, then rows whose fields may
// be quoted. The apostrophe that core::csv_field() puts before formulas is removed. Rows remember their line number.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {

/// The columns of a table by name, and the file name for messages.
struct CsvHeader {
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> column_index;
  std::string file;

  bool has(std::string_view name) const { return column_index.find(name) != column_index.end(); }
};

class CsvRow {
 public:
  CsvRow(std::shared_ptr<const CsvHeader> header, std::vector<std::string> fields, int line)
      : header_(std::move(header)), fields_(std::move(fields)), line_(line) {}

  /// Returns the field in `column` without surrounding blanks; empty if the table has no such column.
  std::string_view text(std::string_view column) const;
  bool given(std::string_view column) const { return !text(column).empty(); }
  /// Return nothing for an empty field. Throw InputError, with file, line and column, if the field is not such a
  /// number.
  std::optional<std::int64_t> integer(std::string_view column) const;
  std::optional<double> real(std::string_view column) const;

  int line() const { return line_; }
  const CsvHeader& header() const { return *header_; }
  [[noreturn]] void fail(const std::string& what) const { throw core::InputError(what, header_->file, line_); }

 private:
  std::shared_ptr<const CsvHeader> header_;
  std::vector<std::string> fields_;
  int line_;
};

struct CsvTable {
  std::shared_ptr<const CsvHeader> header;
  std::vector<CsvRow> rows;
};

/// Parses a table; `name` is the file name in messages. Empty lines are skipped. Throws InputError with file and line
/// for bytes that are not text, more than 1,000 columns, 1,000,000 rows or
/// 4,000,000 fields, an unclosed quote, a column that is
/// unnamed or named twice, and a row whose number of fields differs from the header's.
CsvTable parse_csv(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
