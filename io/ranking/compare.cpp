#include "io/ranking/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.hpp"
#include "core/workload/program/step_parts.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

using Parts = std::vector<std::pair<std::string, double>>;

std::size_t row_of(const Table& experiments, std::int64_t id) {
  const Column* column = experiments.find("id");
  const auto* ids = column != nullptr ? std::get_if<std::vector<std::int64_t>>(&column->values) : nullptr;
  if (ids == nullptr) throw core::InputError("the experiments have no ids");
  const auto found = std::find(ids->begin(), ids->end(), id);
  if (found != ids->end()) return static_cast<std::size_t>(found - ids->begin());
  if (ids->empty()) throw core::InputError(fmt::format("there is no experiment {}: the run has none", id));
  const auto [lowest, highest] = std::minmax_element(ids->begin(), ids->end());
  throw core::InputError(fmt::format("there is no experiment {}: the run has {}, with ids from {} to {}", id,
                                     ids->size(), *lowest, *highest));
}

/// Returns the rows of the two experiments as results of their own, for functions that take whole results.
Results select_rows(const Results& results, const Pair<std::size_t>& rows) {
  Results result;
  result.axis_names = results.axis_names;
  for (const Column& column : results.experiments.columns) {
    Column& to = result.experiments.columns.emplace_back(Column{column.name, column.unit, column.description, {}});
    std::visit(
        [&](const auto& values) {
          to.values = std::decay_t<decltype(values)>{values[rows[0]], values[rows[1]]};
        },
        column.values);
  }
  return result;
}

/// Returns the value of a metric, or nothing if it is missing: -1 in a column of counts, NaN in one of reals.
std::optional<double> metric_at(const Column* column, std::size_t row) {
  if (column == nullptr || column->is_text()) return std::nullopt;
  const double value = column->number_at(row);
  const bool count = std::holds_alternative<std::vector<std::int64_t>>(column->values);
  return std::isnan(value) || (count && value < 0) ? std::nullopt : std::optional(value);
}

// Maximum magnitudes of a part: the parts of a step, and thousands of columns of bytes, add up in 64 bits.
constexpr double kMaxSeconds = 1e5, kMaxBytes = 1e15;

/// Returns a value of a column. Throws InputError for one that cannot be added up.
double checked_value(const Column& column, std::size_t row, double highest) {
  const double value = column.number_at(row);
  if (!(std::abs(value) <= highest))
    throw core::InputError(fmt::format("column '{}' has {}, which is out of range", column.name, column.text_at(row)));
  return value;
}

ExperimentComparison::Metric metric(const Table& experiments, const char* name) {
  const Column* column = experiments.find(name);
  return {name, column != nullptr ? column->unit : "", {metric_at(column, 0), metric_at(column, 1)}};
}

/// Rounds the parts to whole units. Parts that do not add up to the total, as in runs of other versions, get the
/// remainder as one more part.
std::vector<std::int64_t> to_units(const std::vector<double>& parts, std::int64_t total) {
  std::vector<std::int64_t> units;
  const std::int64_t remainder = round_to_sum(parts, total, units);
  units.push_back(remainder);
  return units;
}

ExperimentComparison::Decomposition decomposition_of(const Pair<std::int64_t>& total,
                                                     const std::vector<std::string>& names,
                                                     const Pair<std::vector<std::int64_t>>& values) {
  ExperimentComparison::Decomposition decomposition{total, {}};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (values[0][i] != 0 || values[1][i] != 0) decomposition.parts.push_back({names[i], {values[0][i], values[1][i]}});
  std::stable_sort(decomposition.parts.begin(), decomposition.parts.end(),
                   [](const ExperimentComparison::Part& a, const ExperimentComparison::Part& b) {
                     return std::abs(a.difference()) > std::abs(b.difference());
                   });
  return decomposition;
}

std::optional<ExperimentComparison::Decomposition> time_of(const Table& experiments) {
  const Column *step = experiments.find("step_time_s"), *exact = experiments.find("step_time_ps");
  Pair<std::int64_t> total{};
  Pair<std::vector<std::int64_t>> values;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < 2; ++row) {
    if (!metric_at(step, row)) return std::nullopt;
    total[row] = std::llround(checked_value(*step, row, kMaxSeconds) * 1e12);
    const auto* ps = exact != nullptr ? std::get_if<std::vector<std::int64_t>>(&exact->values) : nullptr;
    if (ps != nullptr && checked_value(*exact, row, kMaxSeconds * 1e12) >= 0) total[row] = (*ps)[row];
    std::vector<double> parts;
    names.clear();
    for (const core::workload::StepPartInfo& part : core::workload::kStepParts) {
      const Column* column = experiments.find(part.column);
      names.emplace_back(part.name());
      parts.push_back(metric_at(column, row) ? checked_value(*column, row, kMaxSeconds) * 1e12 : 0);
    }
    values[row] = to_units(parts, total[row]);
  }
  names.emplace_back("not accounted for");
  return decomposition_of(total, names, values);
}

std::optional<ExperimentComparison::Decomposition> memory_of(const Table& experiments) {
  const Column* peak = experiments.find("memory_peak_bytes");
  if (peak == nullptr) return std::nullopt;
  const auto bytes = [](const Column& column, std::size_t row) {
    return std::llround(checked_value(column, row, kMaxBytes));  // exact: below 2^53
  };
  Pair<std::int64_t> total{bytes(*peak, 0), bytes(*peak, 1)}, remainder = total;
  Pair<std::vector<std::int64_t>> values;
  std::vector<std::string> names;
  constexpr std::string_view kBegin = "memory_", kEnd = "_bytes";
  for (const Column& column : experiments.columns) {
    if (&column == peak || !column.name.starts_with(kBegin) || !column.name.ends_with(kEnd)) continue;
    names.push_back(column.name.substr(kBegin.size(), column.name.size() - kBegin.size() - kEnd.size()));
    for (std::size_t row = 0; row < 2; ++row) {
      values[row].push_back(bytes(column, row));
      remainder[row] -= values[row].back();
    }
  }
  names.emplace_back("not accounted for");
  for (std::size_t row = 0; row < 2; ++row) values[row].push_back(remainder[row]);
  return decomposition_of(total, names, values);
}

/// Compares the axes, and those columns derived from them that differ.
void compare_settings(const Results& selected, ExperimentComparison& comparison) {
  const auto compare = [&](const Column& column, bool tell_common) {
    ExperimentComparison::Setting setting{column.name, {column.text_at(0), column.text_at(1)}};
    if (setting.values[0] != setting.values[1])
      comparison.differing.push_back(std::move(setting));
    else if (tell_common)
      comparison.common.push_back(std::move(setting));
  };
  const Axes axes(selected);
  for (const Axes::Axis& axis : axes.all()) compare(*axis.column, true);
  for (const char* name :
       {"dp", "gpus", "gpu_memory_bytes", "fidelity", "composition", "collectives_calibrated", "collectives_tuner"})
    if (const Column* column = selected.experiments.find(name);
        column != nullptr &&
        std::find(selected.axis_names.begin(), selected.axis_names.end(), name) == selected.axis_names.end())
      compare(*column, false);
}

}  // namespace

std::optional<double> ExperimentComparison::Decomposition::share_of(const Part& part) const {
  if (difference() == 0) return std::nullopt;
  return static_cast<double>(part.difference()) / static_cast<double>(difference());
}

ExperimentComparison compare_experiments(const Results& results, std::int64_t a, std::int64_t b) {
  const Pair<std::size_t> rows{row_of(results.experiments, a), row_of(results.experiments, b)};
  if (a == b) throw core::InputError(fmt::format("experiment {} is named twice; give the ids of two", a));
  const Results selected = select_rows(results, rows);
  const Table& experiments = selected.experiments;
  ExperimentComparison comparison;
  comparison.ids = {a, b};
  compare_settings(selected, comparison);
  for (std::size_t row = 0; row < 2; ++row) {
    comparison.status[row] = experiments.text_at("status", row);
    comparison.reason[row] = experiments.text_at("reason", row);
    comparison.fidelity[row] = experiments.text_at("fidelity", row);
  }
  for (const char* name :
       {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu", "gpu_energy_per_token_j",
        "energy_per_token_j", "usd_per_million_tokens", "goodput", "train_time_s", "train_usd"})
    comparison.metrics.push_back(metric(experiments, name));
  for (const char* name : {"link_hops", "ecn_marks", "pauses", "busiest_link_share"})
    comparison.network.push_back(metric(experiments, name));
  comparison.time = time_of(experiments);
  comparison.memory = memory_of(experiments);
  if (experiments.find("step_time_s") == nullptr) return comparison;
  const Ranking ranking = rank_experiments(selected, {2, "step_time_s asc", ""});
  for (const Ranking::Row& row : ranking.rows) {
    comparison.largest_loss[row.row] = row.largest_loss;
    comparison.largest_loss_share[row.row] = row.largest_loss_share;
  }
  if (ranking.rows.size() < 2) return comparison;
  comparison.faster = static_cast<int>(ranking.rows[0].row);
  comparison.distinction = ranking.rows[1].distinction;
  return comparison;
}

}  // namespace manyworlds::io
