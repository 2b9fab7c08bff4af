// Comma-separated tables as spreadsheets write them (RFC 4180): a header with the names of the columns, then rows whose
// fields may be quoted, and texts guarded as core::csv_field() does. Rows remember their line.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {

/// Where the columns of a table stand, and what its file is called in messages.
struct CsvHeader {
  std::vector<std::string> names;
  std::map<std::string, std::size_t, std::less<>> places;
  std::string file;

  bool has(std::string_view name) const { return places.find(name) != places.end(); }
};

class CsvRow {
 public:
  CsvRow(std::shared_ptr<const CsvHeader> header, std::vector<std::string> fields, int line)
      : header_(std::move(header)), fields_(std::move(fields)), line_(line) {}

  /// The field of that column without blanks around it; empty where the table has no such column.
  std::string_view text(std::string_view column) const;
  bool given(std::string_view column) const { return !text(column).empty(); }
  /// Nothing where the field is empty. Throw InputError, with file, line and column, for anything but such a number.
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

/// `name` stands for the file in messages. Lines that hold nothing are passed over. Throws InputError with file and
/// line for bytes that are no text, more than 1,000 columns or 1,000,000 fields, a quote that is not closed, a column
/// that is named twice or not at all, and a row that has not as many fields as the header.
CsvTable parse_csv(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
