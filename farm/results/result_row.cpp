#include "farm/results/result_row.hpp"

#include <utility>

namespace manyworlds::farm {

using core::step::StepResult;
using io::Column;

Column text_column(std::string name, std::string description, const Rows& rows,
                   const std::function<std::string(const Row&)>& value) {
  std::vector<std::string> values;
  for (const Row& row : rows) values.push_back(value(row));
  return {std::move(name), "", std::move(description), std::move(values)};
}

Column real_column(std::string name, std::string unit, std::string description, const Rows& rows,
                   const std::function<double(const Row&)>& value) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.step != nullptr ? value(row) : kNaN);
  return {std::move(name), std::move(unit), std::move(description) + "; NaN where it did not run", std::move(values)};
}

Column count_column(std::string name, std::string unit, std::string description, const Rows& rows,
                    const std::function<std::int64_t(const StepResult&)>& value) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(row.step != nullptr ? value(*row.step) : kNoCount);
  return {std::move(name), std::move(unit), std::move(description) + "; -1 where it did not run", std::move(values)};
}

Column integer_column(std::string name, std::string unit, std::string description, const Rows& rows,
                      const std::function<std::int64_t(const Row&)>& value) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(value(row));
  return {std::move(name), std::move(unit), std::move(description), std::move(values)};
}

Column axis_column(const experiments::AxisColumn& axis, std::size_t rows,
                   const std::function<const core::OptionValue&(std::size_t)>& value) {
  Column column{axis.name, axis.unit, axis.description, {}};
  const auto fill = [&](auto values, auto convert) {
    for (std::size_t i = 0; i < rows; ++i) values.push_back(convert(value(i)));
    column.values = std::move(values);
  };
  using Kind = core::OptionInfo::Kind;
  if (axis.kind == Kind::integer)
    fill(std::vector<std::int64_t>(), [](const auto& held) { return std::get<std::int64_t>(held); });
  else if (axis.kind == Kind::real)
    fill(std::vector<double>(), [](const auto& held) { return std::get<double>(held); });
  else if (axis.kind == Kind::boolean)
    fill(std::vector<std::string>(), [](const auto& held) { return std::get<bool>(held) ? "true" : "false"; });
  else
    fill(std::vector<std::string>(), [](const auto& held) { return std::get<std::string>(held); });
  return column;
}

}  // namespace manyworlds::farm
