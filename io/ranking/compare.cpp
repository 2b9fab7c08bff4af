#include "io/ranking/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.hpp"
#include "io/ranking/sweep_facts.hpp"
#include "io/results/figures.hpp"

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
  const auto [least, most] = std::minmax_element(ids->begin(), ids->end());
  throw core::InputError(
      fmt::format("there is no experiment {}: the run has {}, with ids from {} to {}", id, ids->size(), *least, *most));
}

/// The two experiments alone, for those who look at whole results.
Results only(const Results& results, const Pair<std::size_t>& rows) {
  Results made;
  made.axis_names = results.axis_names;
  for (const Column& column : results.experiments.columns) {
    Column& to = made.experiments.columns.emplace_back(Column{column.name, column.unit, column.description, {}});
    std::visit(
        [&](const auto& values) {
          to.values = std::decay_t<decltype(values)>{values[rows[0]], values[rows[1]]};
        },
        column.values);
  }
  return made;
}

/// Counts that are not there are -1, figures NaN.
std::optional<double> figure_at(const Column* column, std::size_t row) {
  if (column == nullptr || column->is_text()) return std::nullopt;
  const double value = column->number_at(row);
  const bool count = std::holds_alternative<std::vector<std::int64_t>>(column->values);
  return std::isnan(value) || (count && value < 0) ? std::nullopt : std::optional(value);
}

// The largest figures that parts may have: any number of columns of them still adds up in 64 bits.
constexpr double kMostSeconds = 1e5, kMostBytes = 1e15;

/// Throws InputError for a figure with which nothing can be added up.
double summable(const Column& column, std::size_t row, double most) {
  const double value = column.number_at(row);
  if (!(std::abs(value) <= most))
    throw core::InputError(
        fmt::format("column '{}' has {}, with which nothing can be computed", column.name, column.text_at(row)));
  return value;
}

Contrast::Figure figure(const Table& of, const char* name) {
  const Column* column = of.find(name);
  return {name, column != nullptr ? column->unit : "", {figure_at(column, 0), figure_at(column, 1)}};
}

/// In whole units. Parts that do not come to the total, as in runs of other versions, get one more beside them.
std::vector<std::int64_t> in_units(const std::vector<double>& parts, std::int64_t total) {
  std::vector<std::int64_t> units;
  const std::int64_t left = round_to_sum(parts, total, units);
  units.push_back(left);
  return units;
}

Contrast::Whole whole_of(const Pair<std::int64_t>& total, const std::vector<std::string>& names,
                         const Pair<std::vector<std::int64_t>>& values) {
  Contrast::Whole whole{total, {}};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (values[0][i] != 0 || values[1][i] != 0) whole.parts.push_back({names[i], {values[0][i], values[1][i]}});
  std::stable_sort(whole.parts.begin(), whole.parts.end(), [](const Contrast::Part& a, const Contrast::Part& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  return whole;
}

std::optional<Contrast::Whole> time_of(const Table& of) {
  const Column *step = of.find("step_time_s"), *exact = of.find("step_time_ps");
  Pair<std::int64_t> total{};
  Pair<std::vector<std::int64_t>> values;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < 2; ++row) {
    if (!figure_at(step, row)) return std::nullopt;
    total[row] = std::llround(summable(*step, row, kMostSeconds) * 1e12);
    const auto* ps = exact != nullptr ? std::get_if<std::vector<std::int64_t>>(&exact->values) : nullptr;
    if (ps != nullptr && summable(*exact, row, kMostSeconds * 1e12) >= 0) total[row] = (*ps)[row];
    std::vector<double> parts;
    names.clear();
    for (const std::string_view name : kBreakdown) {
      const Column* column = of.find(name);
      names.push_back(part_name(name));
      parts.push_back(figure_at(column, row) ? summable(*column, row, kMostSeconds) * 1e12 : 0);
    }
    values[row] = in_units(parts, total[row]);
  }
  names.emplace_back("not accounted for");
  return whole_of(total, names, values);
}

std::optional<Contrast::Whole> memory_of(const Table& of) {
  const Column* peak = of.find("memory_peak_bytes");
  if (peak == nullptr) return std::nullopt;
  const auto bytes = [](const Column& column, std::size_t row) {
    return std::llround(summable(column, row, kMostBytes));  // exact: below 2^53
  };
  Pair<std::int64_t> total{bytes(*peak, 0), bytes(*peak, 1)}, left = total;
  Pair<std::vector<std::int64_t>> values;
  std::vector<std::string> names;
  constexpr std::string_view kBegin = "memory_", kEnd = "_bytes";
  for (const Column& column : of.columns) {
    if (&column == peak || !column.name.starts_with(kBegin) || !column.name.ends_with(kEnd)) continue;
    names.push_back(column.name.substr(kBegin.size(), column.name.size() - kBegin.size() - kEnd.size()));
    for (std::size_t row = 0; row < 2; ++row) {
      values[row].push_back(bytes(column, row));
      left[row] -= values[row].back();
    }
  }
  names.emplace_back("not accounted for");
  for (std::size_t row = 0; row < 2; ++row) values[row].push_back(left[row]);
  return whole_of(total, names, values);
}

/// Axes, and what follows from them where that differs.
void compare_settings(const Results& two, Contrast& contrast) {
  const auto compare = [&](const Column& column, bool tell_common) {
    Contrast::Setting setting{column.name, {column.text_at(0), column.text_at(1)}};
    if (setting.values[0] != setting.values[1])
      contrast.differing.push_back(std::move(setting));
    else if (tell_common)
      contrast.common.push_back(std::move(setting));
  };
  const Axes axes(two);
  for (const Axes::Axis& axis : axes.all()) compare(*axis.column, true);
  for (const char* name : {"dp", "gpus", "gpu_memory_bytes", "fidelity", "composition", "collectives_calibrated"})
    if (const Column* column = two.experiments.find(name);
        column != nullptr && std::find(two.axis_names.begin(), two.axis_names.end(), name) == two.axis_names.end())
      compare(*column, false);
}

}  // namespace

std::optional<double> Contrast::Whole::share_of(const Part& part) const {
  if (difference() == 0) return std::nullopt;
  return static_cast<double>(part.difference()) / static_cast<double>(difference());
}

Contrast compare_experiments(const Results& results, std::int64_t a, std::int64_t b) {
  const Pair<std::size_t> rows{row_of(results.experiments, a), row_of(results.experiments, b)};
  if (a == b) throw core::InputError(fmt::format("experiment {} is named twice; give the ids of two", a));
  const Results two = only(results, rows);
  const Table& of = two.experiments;
  Contrast contrast;
  contrast.ids = {a, b};
  compare_settings(two, contrast);
  for (std::size_t row = 0; row < 2; ++row) {
    contrast.status[row] = of.text_at("status", row);
    contrast.reason[row] = of.text_at("reason", row);
    contrast.analytic[row] = of.text_at("fidelity", row) == "analytic";
  }
  for (const char* name :
       {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu", "gpu_energy_per_token_j",
        "energy_per_token_j", "usd_per_million_tokens", "goodput", "train_time_s", "train_usd"})
    contrast.figures.push_back(figure(of, name));
  for (const char* name : {"link_hops", "ecn_marks", "pauses", "busiest_link_share"})
    contrast.network.push_back(figure(of, name));
  contrast.time = time_of(of);
  contrast.memory = memory_of(of);
  if (of.find("step_time_s") == nullptr) return contrast;
  const Ranking ranking = rank_experiments(two, {2, "step_time_s asc", ""});
  for (const Ranking::Row& row : ranking.rows) {
    contrast.lost_to[row.row] = row.lost_to;
    contrast.lost_share[row.row] = row.lost_share;
  }
  if (ranking.rows.size() < 2) return contrast;
  contrast.faster = static_cast<int>(ranking.rows[0].row);
  contrast.apart = ranking.rows[1].apart;
  return contrast;
}

}  // namespace manyworlds::io
