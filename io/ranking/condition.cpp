#include "io/ranking/condition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/options.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::io {

namespace {

constexpr const char* kOption = "--where";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

[[noreturn]] void reject(const std::string& what) {
  throw core::InputError(what, kOption);
}

/// Splits a condition at the word "and" outside of quotes.
std::vector<std::string_view> split_terms(std::string_view text) {
  constexpr std::string_view kAnd = " and ";
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text.substr(i, kAnd.size()) == kAnd) {
      terms.push_back(text.substr(begin, i - begin));
      begin = i + kAnd.size();
      i = begin - 2;  // its last space may begin the next " and ", which then has no left operand
    }
  }
  if (quote != 0) reject(fmt::format("'{}' has no closing {}", text, quote));
  terms.push_back(text.substr(begin));
  return terms;
}

std::string unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  return std::string(quoted ? text.substr(1, text.size() - 2) : text);
}

double number_for(const Column& column, std::string_view text) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.unit = column.unit;
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>(kOption);
  return std::get<double>(experiments::import::read_value(node, info, column.name));
}

/// Aliases: the titles that rendered tables give to columns.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kColumnAliases{
    {{"step_time", "step_time_s"},
     {"peak_memory", "memory_peak_bytes"},
     {"memory", "memory_peak_bytes"},
     {"tokens", "tokens_per_s_per_gpu"},
     {"MFU", "mfu"}}};

}  // namespace

const Column& require_column(const std::string& typed, const Table& table, const std::string& option) {
  const auto alias =
      std::find_if(kColumnAliases.begin(), kColumnAliases.end(), [&](const auto& one) { return one.first == typed; });
  const std::string name = alias == kColumnAliases.end() ? typed : std::string(alias->second);
  if (const Column* column = table.find(name)) return *column;
  std::vector<std::string> known, ending;
  for (const Column& column : table.columns) {
    known.push_back(column.name);
    if (column.name.ends_with("." + name)) ending.push_back(column.name);
  }
  if (ending.size() == 1) return *table.find(ending.front());
  if (!ending.empty())
    throw core::InputError(fmt::format("column '{}' may be {}; give one of them", name, fmt::join(ending, " or ")),
                           option);
  throw core::InputError(fmt::format("there is no column '{}'{}", name, experiments::suggestion(name, known)), option);
}

Condition::Condition(std::string_view text, const Table& table) {
  if (trimmed(text).empty()) return;
  for (const std::string_view term : split_terms(text)) terms_.push_back(parse_term(trimmed(term), table));
}

Condition::Term Condition::parse_term(std::string_view text, const Table& table) {
  static constexpr std::array<std::pair<std::string_view, Op>, 6> kOps{{{"<=", Op::less_or_equal},
                                                                        {">=", Op::greater_or_equal},
                                                                        {"==", Op::equal},
                                                                        {"!=", Op::not_equal},
                                                                        {"<", Op::less},
                                                                        {">", Op::greater}}};
  const std::size_t at = std::min(text.find_first_of("<>=!"), text.size());
  const auto found = std::find_if(kOps.begin(), kOps.end(),
                                  [&](const auto& op) { return text.substr(at, op.first.size()) == op.first; });
  if (at == 0 || found == kOps.end())
    reject(fmt::format("'{}' is no condition; write 'column op value', op one of < <= > >= == !=", text));
  const Column& column = require_column(std::string(trimmed(text.substr(0, at))), table, kOption);
  const std::string_view value = trimmed(text.substr(at + found->first.size()));
  if (value.empty()) reject(fmt::format("'{}' lacks a value", text));
  if (!column.is_text()) return {&column, found->second, number_for(column, value), {}};
  if (found->second != Op::equal && found->second != Op::not_equal)
    reject(fmt::format("'{}': column '{}' is text, which compares with == and != only", text, column.name));
  return {&column, found->second, 0, unquoted(value)};
}

bool Condition::matches(const Term& term, std::size_t row) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&term.column->values))
    return ((*texts)[row] == term.text) == (term.op == Op::equal);
  // On the supported platforms long double represents every 64-bit integer exactly.
  const auto* integers = std::get_if<std::vector<std::int64_t>>(&term.column->values);
  const long double value = integers ? static_cast<long double>((*integers)[row])
                                     : static_cast<long double>(std::get<1>(term.column->values)[row]);
  const long double wanted = term.number;
  if (std::isnan(value)) return false;
  switch (term.op) {
    case Op::less:
      return value < wanted;
    case Op::less_or_equal:
      return value <= wanted;
    case Op::greater:
      return value > wanted;
    case Op::greater_or_equal:
      return value >= wanted;
    case Op::equal:
      return value == wanted;
    case Op::not_equal:
      return value != wanted;
  }
  return false;
}

bool Condition::matches(std::size_t row) const {
  return std::all_of(terms_.begin(), terms_.end(), [row](const Term& term) { return matches(term, row); });
}

bool Condition::mentions(std::string_view column) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) { return term.column->name == column; });
}

}  // namespace manyworlds::io
