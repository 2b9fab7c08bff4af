#include "experiments/measured/residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace manyworlds::experiments::measured {
namespace {

constexpr const char* kColumns[] = {"gpu", "kind", "family", "rows", "steps_percent", "pairs", "pairs_percent"};

std::string percents(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", 100 * share);
  return text;
}

/// Returns shares of at least `minimum`, in ascending order.
std::vector<double> shares(const import::CsvRow& row, const char* column, double minimum) {
  std::vector<double> result;
  std::string_view rest = row.text(column);
  while (!rest.empty()) {
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<std::size_t>(end - rest.data());
    const bool ends = length == rest.size() || rest[length] == ' ';
    if (error != std::errc() || !ends || !std::isfinite(value) || value / 100 < minimum)
      row.fail(
          fmt::format("{} must be per cents from {} on, separated by blanks, not '{}'", column, 100 * minimum, rest));
    result.push_back(value / 100);
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  if (!std::is_sorted(result.begin(), result.end())) row.fail(fmt::format("{} must be in ascending order", column));
  if (result.size() > kMaxValues) row.fail(fmt::format("{} has more than {} values", column, kMaxValues));
  return result;
}

std::int64_t count(const import::CsvRow& row, const char* column, std::size_t values) {
  const auto number = row.integer(column);
  if (!number || *number < static_cast<std::int64_t>(values) || (*number > 0) != (values > 0))
    row.fail(fmt::format("{} must say how many rows the {} values stand for", column, values));
  return *number;
}

}  // namespace

std::vector<double> quantile_sample(std::vector<std::pair<double, double>> values_and_weights) {
  std::sort(values_and_weights.begin(), values_and_weights.end());
  double total_weight = 0;
  for (const auto& [value, weight] : values_and_weights) total_weight += weight;
  const std::size_t count = std::min(values_and_weights.size(), kMaxValues);
  std::vector<double> result;
  double weight_so_far = 0;
  for (std::size_t at = 0; result.size() < count && at < values_and_weights.size(); ++at) {
    weight_so_far += values_and_weights[at].second;
    // The samples are the midpoints of `count` equal parts of the weight.
    while (result.size() < count && weight_so_far * static_cast<double>(count) >=
                                        (static_cast<double>(result.size()) + 0.5) * total_weight * (1 - 1e-12))
      result.push_back(values_and_weights[at].first);
  }
  return result;
}

std::string residuals_table(const std::vector<Residuals>& residuals) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const Residuals& one : residuals)
    text += fmt::format("{},{},\"{}\",{},{},{},{}\n", one.gpu, one.kind, one.family, one.rows, percents(one.steps),
                        one.pairs, percents(one.pair_errors));
  return text;
}

std::vector<Residuals> read_residuals(const import::CsvTable& table) {
  for (const char* column : kColumns)
    if (!table.header->has(column))
      throw core::InputError(fmt::format("has no column '{}'; residuals have {}", column, fmt::join(kColumns, ", ")),
                             table.header->file, 1);
  std::vector<Residuals> result;
  for (const import::CsvRow& row : table.rows) {
    Residuals one{
        std::string(row.text("gpu")),         std::string(row.text("kind")),  std::string(row.text("family")), 0, 0,
        shares(row, "steps_percent", -0.999), shares(row, "pairs_percent", 0)};
    if (one.steps.empty()) row.fail("steps_percent holds no value");
    one.rows = count(row, "rows", one.steps.size());
    one.pairs = count(row, "pairs", one.pair_errors.size());
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace manyworlds::experiments::measured
