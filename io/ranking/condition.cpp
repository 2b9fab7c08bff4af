#include "io/ranking/condition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::io {

namespace {

constexpr const char* kOption = "--where";

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
    if (column.name.find('.') != std::string::npos) known.push_back(column.name.substr(column.name.rfind('.') + 1));
    if (column.name.ends_with("." + name)) ending.push_back(column.name);
  }
  if (ending.size() == 1) return *table.find(ending.front());
  if (!ending.empty())
    throw core::InputError(fmt::format("column '{}' may be {}; give one of them", name, fmt::join(ending, " or ")),
                           option);
  throw core::InputError(fmt::format("there is no column '{}'{}", name, experiments::suggestion(name, known)), option);
}

Condition::Condition(std::string_view text, const Table& table) {
  if (text.find_first_not_of(' ') == std::string_view::npos) return;
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>(kOption);
  expression_.emplace(node, [&](const std::string& name, const experiments::import::Node&) {
    using Kind = experiments::ExpressionName::Kind;
    const Column& column = require_column(name, table, kOption);
    columns_.push_back(&column);
    return experiments::ExpressionName{column.name, column.is_text() ? Kind::text : Kind::number, column.unit};
  });
}

bool Condition::matches(std::size_t row) const {
  if (!expression_) return true;
  std::vector<core::OptionValue> values;
  for (const Column* column : columns_) {
    if (column->is_text()) {
      values.emplace_back(column->text_at(row));
      continue;
    }
    const double value = column->number_at(row);
    if (std::isnan(value)) return false;
    values.emplace_back(value);
  }
  return expression_->holds(values);
}

bool Condition::mentions(std::string_view name) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column* column) { return column->name == name; });
}

}  // namespace manyworlds::io
