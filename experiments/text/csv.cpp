#include "experiments/text/csv.hpp"

#include <cmath>

#include "core/base/escape.hpp"
#include "core/base/number_in.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr std::size_t kMaxColumns = 1'000;
// A row takes about 120 bytes, and each of its fields 32 and its text.
constexpr std::size_t kMaxRows = 1'000'000, kMaxFields = 4'000'000;

constexpr std::string_view kBlanks = " \t\r";

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool more() const { return at_ < text_.size(); }
  int line() const { return line_; }

  /// Reads the fields up to the end of the line, or past it if a field is quoted.
  std::vector<std::string> record() {
    std::vector<std::string> fields;
    for (bool last = false; !last;) {
      if (++fields_ > kMaxFields) throw InputError(fmt::format("more than {} fields", kMaxFields), file_, line_);
      fields.emplace_back(core::csv_text(peek() == '"' ? quoted() : plain()));
      last = peek() != ',';
      if (!last) ++at_;
    }
    if (peek() == '\r') ++at_;
    if (peek() == '\n') ++at_;
    ++line_;
    return fields;
  }

 private:
  char peek() const { return more() ? text_[at_] : '\n'; }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string field(trimmed(text_.substr(at_, end - at_), kBlanks));
    at_ = end;
    return field;
  }

  std::string quoted() {
    const int opening_line = line_;
    std::string field;
    for (++at_;; ++at_) {
      if (!more()) throw InputError("a quote is not closed", file_, opening_line);
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field.push_back(text_[at_]);
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field.push_back('"'), ++at_;
      } else {
        break;
      }
    }
    ++at_;
    if (const char next = peek(); next != ',' && next != '\n' && next != '\r')
      throw InputError("text follows a closing quote; a quote inside a field is written twice", file_, line_);
    return field;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, fields_ = 0;
  int line_ = 1;
};

bool is_empty_line(const std::vector<std::string>& fields) {
  return fields.size() == 1 && fields[0].empty();
}

std::shared_ptr<const CsvHeader> make_header(std::vector<std::string> names, const std::string& file, int line) {
  if (names.size() > kMaxColumns) throw InputError(fmt::format("more than {} columns", kMaxColumns), file, line);
  auto header = std::make_shared<CsvHeader>();
  header->file = file;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) throw InputError(fmt::format("column {} has no name", i + 1), file, line);
    if (!header->column_index.emplace(names[i], i).second)
      throw InputError(fmt::format("column '{}' is repeated", names[i]), file, line);
  }
  header->names = std::move(names);
  return header;
}

}  // namespace

std::string_view CsvRow::text(std::string_view column) const {
  const auto found = header_->column_index.find(column);
  return found == header_->column_index.end() ? std::string_view() : trimmed(fields_[found->second], kBlanks);
}

std::optional<std::int64_t> CsvRow::integer(std::string_view column) const {
  const std::string_view field = text(column);
  if (field.empty()) return std::nullopt;
  const auto value = core::number_in<std::int64_t>(field);
  if (!value) fail(fmt::format("{} must be an integer, not '{}'", column, field));
  return value;
}

std::optional<double> CsvRow::real(std::string_view column) const {
  const std::string_view field = text(column);
  if (field.empty()) return std::nullopt;
  const auto value = core::number_in<double>(field);
  if (!value || !std::isfinite(*value)) fail(fmt::format("{} must be a number, not '{}'", column, field));
  return value;
}

CsvTable parse_csv(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte-order mark of some spreadsheets
  check_text(text, name);
  Reader reader(text, name);
  CsvTable table;
  while (reader.more()) {
    const int line = reader.line();
    std::vector<std::string> fields = reader.record();
    if (is_empty_line(fields)) continue;
    if (!table.header) {
      table.header = make_header(std::move(fields), name, line);
      continue;
    }
    if (fields.size() != table.header->names.size())
      throw InputError(fmt::format("a row of {} fields below {} columns", fields.size(), table.header->names.size()),
                       name, line);
    if (table.rows.size() == kMaxRows) throw InputError(fmt::format("more than {} rows", kMaxRows), name, line);
    table.rows.emplace_back(table.header, std::move(fields), line);
  }
  if (!table.header) throw InputError("the table is empty; its first line names the columns", name, 1);
  return table;
}

}  // namespace manyworlds::experiments::import
