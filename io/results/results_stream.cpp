#include "io/results/results_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/error.hpp"
#include "core/sharing/bytes.hpp"

namespace manyworlds::io {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;

namespace {

/// Returns the memory limit of the tables. Random numbers take 5 bytes per byte of the file, and repetitive rows a few
/// dozen times more. The limit of a small file is lower, so that a file of a hundred kilobytes cannot take half a
/// gigabyte.
std::uint64_t max_table_bytes(std::uint64_t file_bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return std::min(32 * kMiB + 256 * file_bytes, 256 * kMiB + 64 * file_bytes);
}

enum class MessageKind : std::uint8_t { format_version, spec, column, values, axis, provenance_entry, refusal, end };

ByteWriter message(MessageKind kind) {
  ByteWriter out;
  out.put(kind);
  return out;
}

std::string column_name(std::size_t table, const std::string& name) {
  return fmt::format("{}/{}", result_tables(Results{})[table].first, name);
}

/// Returns the bytes of a column's element in memory, without the heap memory of long texts.
std::uint64_t element_bytes(ElementType type) {
  return type == ElementType::text ? sizeof(std::string) : 8;
}

/// Returns the heap memory of a text; short texts are stored inside the string object.
std::uint64_t heap_bytes(std::size_t size) {
  return size <= std::string().capacity() ? 0 : size + 1;
}

template <class Value>
void append_numbers(std::vector<Value>& to, std::string_view bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
}

}  // namespace

MemoryBudget::MemoryBudget(std::uint64_t file_bytes) : bytes_(max_table_bytes(file_bytes)), left_(bytes_) {}

void MemoryBudget::check(std::uint64_t count, std::uint64_t each, const std::string& what) const {
  if (each > 0 && count > left_ / each)
    throw InvalidResults(
        fmt::format("{} is too large for a file of this size: the tables would take more than "
                    "{} MiB of memory",
                    what, bytes_ >> 20));
}

void MemoryBudget::charge(std::uint64_t count, std::uint64_t each, const std::string& what) {
  check(count, each, what);
  left_ -= count * each;
}

namespace results_message {

std::string format_version(std::int64_t version) {
  return message(MessageKind::format_version).integer(version).take();
}

std::string spec(std::string_view text) {
  return message(MessageKind::spec).text(text).take();
}

std::string column(std::size_t table, const Column& heading, ElementType type, std::uint64_t rows) {
  return message(MessageKind::column)
      .put(static_cast<std::uint8_t>(table))
      .text(heading.name)
      .text(heading.unit)
      .text(heading.description)
      .put(type)
      .put(rows)
      .take();
}

std::string values(std::string_view elements, std::uint64_t width) {
  return message(MessageKind::values).put(width).text(elements).take();
}

std::string axis(std::string_view name) {
  return message(MessageKind::axis).text(name).take();
}

std::string provenance_entry(const Attribute& attribute) {
  ByteWriter out = message(MessageKind::provenance_entry);
  out.text(attribute.name).put(static_cast<std::uint8_t>(attribute.value.index()));
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) return out.integer(*integer).take();
  if (const auto* real = std::get_if<double>(&attribute.value)) return out.real(*real).take();
  return out.text(std::get<std::string>(attribute.value)).take();
}

std::string refusal(std::string_view words) {
  return message(MessageKind::refusal).text(words).take();
}

std::string end() {
  return message(MessageKind::end).take();
}

}  // namespace results_message

void ResultsReceiver::take(std::string_view bytes) {
  MANYWORLDS_CHECK(!ended_, "a message of {} bytes behind the last one", bytes.size());
  ByteReader in(bytes);
  const MessageKind kind = in.get<MessageKind>();
  if (kind != MessageKind::values) end_column();
  switch (kind) {
    case MessageKind::format_version:
      format_version_ = in.integer();
      break;
    case MessageKind::spec:
      budget_.charge(1, bytes.size(), "/spec");
      results_.spec = in.text();
      break;
    case MessageKind::column:
      begin_column(in);
      break;
    case MessageKind::values:
      add_values(in);
      break;
    case MessageKind::axis:
      if (results_.axis_names.size() == kMaxAxes)
        throw InvalidResults(fmt::format("it has more than {} axes", kMaxAxes));
      results_.axis_names.push_back(in.text());
      break;
    case MessageKind::provenance_entry:
      add_provenance_entry(in);
      break;
    case MessageKind::refusal:
      throw InvalidResults(in.text());
    case MessageKind::end:
      ended_ = true;
      break;
    default:
      MANYWORLDS_CHECK(false, "a message of kind {}", static_cast<int>(kind));
  }
  in.end();
}

void ResultsReceiver::begin_column(ByteReader& in) {
  table_ = in.get<std::uint8_t>();
  const auto tables = result_tables(results_);
  MANYWORLDS_CHECK(table_ < tables.size(), "table {}", table_);
  Table& table = *tables[table_].second;
  Column column{in.text(), in.text(), in.text(), {}};
  const auto type = in.get<ElementType>();
  rows_ = in.get<std::uint64_t>();
  const std::string where = column_name(table_, column.name);
  if (table.columns.size() == kMaxColumns)
    throw InvalidResults(fmt::format("{} has more than {} columns", tables[table_].first, kMaxColumns));
  if (table.find(column.name)) throw InvalidResults(fmt::format("{} occurs twice", where));
  if (!table.columns.empty() && table.rows() != rows_)
    throw InvalidResults(fmt::format("{} has {} rows, and the columns before it {}", where, rows_, table.rows()));
  budget_.charge(rows_, element_bytes(type), where);
  budget_.charge(1, sizeof(Column) + column.name.size() + column.unit.size() + column.description.size(), where);
  const auto reserve = [&](auto values) {
    values.reserve(static_cast<std::size_t>(rows_));
    column.values = std::move(values);
  };
  switch (type) {
    case ElementType::integer:
      reserve(std::vector<std::int64_t>());
      break;
    case ElementType::real:
      reserve(std::vector<double>());
      break;
    case ElementType::text:
      reserve(std::vector<std::string>());
      break;
    default:
      MANYWORLDS_CHECK(false, "{} of type {}", where, static_cast<int>(type));
  }
  column_ = &table.columns.emplace_back(std::move(column));
}

void ResultsReceiver::add_values(ByteReader& in) {
  const auto width = in.get<std::uint64_t>();
  const std::string_view elements = in.view();
  MANYWORLDS_CHECK(column_ != nullptr && width > 0 && elements.size() % width == 0 &&
                       elements.size() / width <= rows_ - column_->rows(),
                   "{} bytes of values, {} each", elements.size(), width);
  if (auto* texts = std::get_if<std::vector<std::string>>(&column_->values)) {
    for (std::size_t at = 0; at < elements.size(); at += width) {
      const std::string_view padded = elements.substr(at, width), text = padded.substr(0, padded.find('\0'));
      if (const std::uint64_t more = heap_bytes(text.size()); more > 0)
        budget_.charge(1, more, column_name(table_, column_->name));
      texts->emplace_back(text);
    }
    return;
  }
  MANYWORLDS_CHECK(width == 8, "numbers of {} bytes", width);
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&column_->values))
    append_numbers(*integers, elements);
  else
    append_numbers(std::get<std::vector<double>>(column_->values), elements);
}

void ResultsReceiver::add_provenance_entry(ByteReader& in) {
  if (results_.provenance.size() == kMaxProvenanceEntries)
    throw InvalidResults(fmt::format("/provenance has more than {} attributes", kMaxProvenanceEntries));
  Attribute provenance_entry{in.text(), {}};
  switch (in.get<std::uint8_t>()) {
    case 0:
      provenance_entry.value = in.integer();
      break;
    case 1:
      provenance_entry.value = in.real();
      break;
    default:
      provenance_entry.value = in.text();
  }
  const auto* text = std::get_if<std::string>(&provenance_entry.value);
  budget_.charge(1, sizeof(Attribute) + provenance_entry.name.size() + (text != nullptr ? text->size() : 0),
                 "/provenance");
  results_.provenance.push_back(std::move(provenance_entry));
}

void ResultsReceiver::end_column() {
  MANYWORLDS_CHECK(column_ == nullptr || column_->rows() == rows_, "{} of {} rows of {}", column_->rows(), rows_,
                   column_name(table_, column_->name));
  column_ = nullptr;
}

Results ResultsReceiver::finish() {
  MANYWORLDS_CHECK(ended_, "results without their end");
  std::set<std::string> axes;
  for (const std::string& axis : results_.axis_names) {
    if (!results_.experiments.find(axis)) throw InvalidResults(fmt::format("axis '{}' has no column", axis));
    if (!axes.insert(axis).second) throw InvalidResults(fmt::format("axis '{}' is there twice", axis));
  }
  for (const RequiredColumn& wanted : required_columns()) {
    const Column* column = results_.experiments.find(wanted.name);
    if (column == nullptr) throw InvalidResults(fmt::format("experiments has no column '{}'", wanted.name));
    if (column->type() != wanted.type)
      throw InvalidResults(fmt::format("experiments/{} is of type {}; it should be {}", wanted.name,
                                       name_of(column->type()), name_of(wanted.type)));
  }
  return std::move(results_);
}

}  // namespace manyworlds::io
