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

/// Tables of drawn figures take 5 bytes for each of the file, and what repeats itself row by row some dozen times more.
/// A small file gets less in all, so that nobody is sent a hundred kilobytes that take half a gigabyte.
std::uint64_t tables_within(std::uint64_t file_bytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return std::min(32 * kMiB + 256 * file_bytes, 256 * kMiB + 64 * file_bytes);
}

enum class Part : std::uint8_t { format_version, spec, column, values, axis, fact, refusal, end };

ByteWriter message(Part part) {
  ByteWriter out;
  out.put(part);
  return out;
}

std::string column_name(std::size_t table, const std::string& name) {
  return fmt::format("{}/{}", answer_tables(Results{})[table].first, name);
}

/// Bytes of an element of a column in memory, long texts not counted.
std::uint64_t held_bytes(ElementType type) {
  return type == ElementType::text ? sizeof(std::string) : 8;
}

/// What a text takes beside its object: short ones lie inside.
std::uint64_t text_bytes(std::size_t size) {
  return size <= std::string().capacity() ? 0 : size + 1;
}

template <class Value>
void append_numbers(std::vector<Value>& to, std::string_view bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
}

}  // namespace

ReadingBudget::ReadingBudget(std::uint64_t file_bytes) : bytes_(tables_within(file_bytes)), left_(bytes_) {}

void ReadingBudget::check(std::uint64_t count, std::uint64_t each, const std::string& what) const {
  if (each > 0 && count > left_ / each)
    throw NoResults(
        fmt::format("{} is larger than a file of its size can mean: with it, the tables take more than "
                    "{} MiB of memory",
                    what, bytes_ >> 20));
}

void ReadingBudget::charge(std::uint64_t count, std::uint64_t each, const std::string& what) {
  check(count, each, what);
  left_ -= count * each;
}

namespace results_message {

std::string format_version(std::int64_t version) {
  return message(Part::format_version).integer(version).take();
}

std::string spec(std::string_view text) {
  return message(Part::spec).text(text).take();
}

std::string column(std::size_t table, const Column& heading, ElementType type, std::uint64_t rows) {
  return message(Part::column)
      .put(static_cast<std::uint8_t>(table))
      .text(heading.name)
      .text(heading.unit)
      .text(heading.description)
      .put(type)
      .put(rows)
      .take();
}

std::string values(std::string_view elements, std::uint64_t width) {
  return message(Part::values).put(width).text(elements).take();
}

std::string axis(std::string_view name) {
  return message(Part::axis).text(name).take();
}

std::string fact(const Attribute& attribute) {
  ByteWriter out = message(Part::fact);
  out.text(attribute.name).put(static_cast<std::uint8_t>(attribute.value.index()));
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) return out.integer(*integer).take();
  if (const auto* real = std::get_if<double>(&attribute.value)) return out.real(*real).take();
  return out.text(std::get<std::string>(attribute.value)).take();
}

std::string refusal(std::string_view words) {
  return message(Part::refusal).text(words).take();
}

std::string end() {
  return message(Part::end).take();
}

}  // namespace results_message

void ResultsReceiver::take(std::string_view bytes) {
  MANYWORLDS_CHECK(!ended_, "a message of {} bytes behind the last one", bytes.size());
  ByteReader in(bytes);
  const Part part = in.get<Part>();
  if (part != Part::values) end_column();
  switch (part) {
    case Part::format_version:
      format_version_ = in.integer();
      break;
    case Part::spec:
      budget_.charge(1, bytes.size(), "/spec");
      results_.spec = in.text();
      break;
    case Part::column:
      begin_column(in);
      break;
    case Part::values:
      add_values(in);
      break;
    case Part::axis:
      if (results_.axis_names.size() == kMostAxes) throw NoResults(fmt::format("it has more than {} axes", kMostAxes));
      results_.axis_names.push_back(in.text());
      break;
    case Part::fact:
      add_fact(in);
      break;
    case Part::refusal:
      throw NoResults(in.text());
    case Part::end:
      ended_ = true;
      break;
    default:
      MANYWORLDS_CHECK(false, "a message of kind {}", static_cast<int>(part));
  }
  in.end();
}

void ResultsReceiver::begin_column(ByteReader& in) {
  table_ = in.get<std::uint8_t>();
  const auto tables = answer_tables(results_);
  MANYWORLDS_CHECK(table_ < tables.size(), "table {}", table_);
  Table& table = *tables[table_].second;
  Column column{in.text(), in.text(), in.text(), {}};
  const auto type = in.get<ElementType>();
  rows_ = in.get<std::uint64_t>();
  const std::string where = column_name(table_, column.name);
  if (table.columns.size() == kMostColumns)
    throw NoResults(fmt::format("{} has more than {} columns", tables[table_].first, kMostColumns));
  if (table.find(column.name)) throw NoResults(fmt::format("{} is there twice", where));
  if (!table.columns.empty() && table.rows() != rows_)
    throw NoResults(fmt::format("{} has {} rows, and the columns before it {}", where, rows_, table.rows()));
  budget_.charge(rows_, held_bytes(type), where);
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
      if (const std::uint64_t more = text_bytes(text.size()); more > 0)
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

void ResultsReceiver::add_fact(ByteReader& in) {
  if (results_.provenance.size() == kMostFacts)
    throw NoResults(fmt::format("/provenance has more than {} facts", kMostFacts));
  Attribute fact{in.text(), {}};
  switch (in.get<std::uint8_t>()) {
    case 0:
      fact.value = in.integer();
      break;
    case 1:
      fact.value = in.real();
      break;
    default:
      fact.value = in.text();
  }
  const auto* text = std::get_if<std::string>(&fact.value);
  budget_.charge(1, sizeof(Attribute) + fact.name.size() + (text != nullptr ? text->size() : 0), "/provenance");
  results_.provenance.push_back(std::move(fact));
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
    if (!results_.experiments.find(axis)) throw NoResults(fmt::format("axis '{}' has no column", axis));
    if (!axes.insert(axis).second) throw NoResults(fmt::format("axis '{}' is there twice", axis));
  }
  for (const RequiredColumn& wanted : required_columns()) {
    const Column* column = results_.experiments.find(wanted.name);
    if (column == nullptr) throw NoResults(fmt::format("experiments has no column '{}'", wanted.name));
    if (column->type() != wanted.type)
      throw NoResults(fmt::format("experiments/{} is of type {}; it should be {}", wanted.name, name_of(column->type()),
                                  name_of(wanted.type)));
  }
  return std::move(results_);
}

}  // namespace manyworlds::io
