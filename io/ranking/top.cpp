#include "io/ranking/top.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/base/error.hpp"
#include "core/workload/program/step_parts.hpp"
#include "io/ranking/condition.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/results/known_value.hpp"

namespace manyworlds::io {
namespace {

using core::workload::StepPart;
using core::workload::StepPartInfo;

void find_largest_loss(const Table& experiments, Ranking::Row& row) {
  double largest = 0;
  for (const StepPartInfo& part : core::workload::kStepParts) {
    if (part.part <= StepPart::backward) continue;  // the useful work of a step is not a loss
    const Column* column = experiments.find(part.column);
    const double seconds = column ? column->number_at(row.row) : 0;
    if (!(seconds > largest)) continue;
    largest = seconds;
    row.largest_loss = part.name();
  }
  const Column* step = experiments.find("step_time_s");
  if (step && largest > 0) row.largest_loss_share = largest / step->number_at(row.row);
}

/// What two experiments differ in, which decides what errors their step times have in common: those of all kernels on
/// other networks, most of them with other layouts, and none with another model, batch, precision or machine.
struct Difference {
  bool layout = false, network = false, other = false;
};

Difference difference_of(const Results& results, std::size_t a, std::size_t b) {
  Difference result;
  for (const std::string& axis : results.axis_names) {
    const Column* column = results.experiments.find(axis);
    if (column == nullptr || column->text_at(a) == column->text_at(b)) continue;
    constexpr std::array<std::string_view, 6> kOfNetwork{"topology",    "transport", "faults",
                                                         "collectives", "placement", "cluster.nic"};
    const auto begins = [&](std::string_view prefix) { return axis.starts_with(prefix); };
    if (std::any_of(kOfNetwork.begin(), kOfNetwork.end(), begins))
      result.network = true;
    else if (begins("strategy") && axis != "strategy.global_batch" && axis.find("precision") == std::string::npos)
      result.layout = true;
    else
      result.other = true;
  }
  return result;
}

/// The uncertainty of step times, and of every column that is proportional to them.
class StepTimeIntervals {
 public:
  StepTimeIntervals(const Results& results, const Column& by)
      : results_(results), by_(by), is_time_(by.unit == "s" || by.unit == "USD") {
    const bool is_speed = by.name == "step_time_s" || by.name == "tokens_per_s_per_gpu" || by.name == "mfu" ||
                          by.name == "usd_per_million_tokens";
    for (std::size_t i = 0; i < kColumns.size() && is_speed; ++i) columns_[i] = results.experiments.find(kColumns[i]);
  }

  Distinction compare(std::size_t best, std::size_t row) const {
    if (!known(best) || !known(row)) return Distinction::unknown;
    if (best == row) return Distinction::best;
    const auto [low, high] = interval(row);
    const auto [best_low, best_high] = interval(best);
    const bool overlap = low <= best_high && best_low <= high;
    const Difference difference = difference_of(results_, best, row);
    double same_up_to = 1;  // step times of a smaller ratio may be the same
    if (difference.layout) same_up_to = std::max(at(3, best), at(3, row));
    if (difference.network) same_up_to += network_error(best, row);
    if (difference.other || std::isnan(same_up_to))
      return overlap ? Distinction::indistinguishable : Distinction::distinguishable;
    const double ratio = by_.number_at(row) / by_.number_at(best);
    if (std::max(ratio, 1 / ratio) < same_up_to) return Distinction::indistinguishable;
    return overlap ? Distinction::overlapping : Distinction::distinguishable;
  }

 private:
  /// Returns what the waits of two steps for their networks may be off by in comparison, as a share of the best one's
  /// time: waits of a smaller ratio may be the same. Parts of a step that both networks leave alone cancel. NaN if
  /// nothing is known of it.
  double network_error(std::size_t best, std::size_t row) const {
    const Column* ratio = results_.experiments.find("network_ratio");
    if (ratio == nullptr) return std::nan("");
    double waits = 0;
    for (const StepPartInfo& part : core::workload::kStepParts) {
      const bool is_of_network = part.part >= StepPart::slowed && part.part <= StepPart::exposed_ep;
      const Column* column = is_of_network ? results_.experiments.find(part.column) : nullptr;
      if (column == nullptr) continue;
      constexpr double kSame = 1e-3;
      const double a = column->number_at(best), b = column->number_at(row);
      if (std::abs(a - b) > kSame * std::max(a, b)) waits += std::min(a, b);
    }
    return (std::max(ratio->number_at(best), ratio->number_at(row)) - 1) * waits / at(0, best);
  }

  static constexpr std::array<std::string_view, 4> kColumns{"step_time_s", "step_time_low_s", "step_time_high_s",
                                                            "distinguishable_ratio"};

  double at(std::size_t column, std::size_t row) const { return columns_[column]->number_at(row); }
  bool known(std::size_t row) const {
    return std::all_of(columns_.begin(), columns_.end(), [row](const Column* column) {
      return column != nullptr && !std::isnan(column->number_at(row));
    });
  }
  /// Returns the interval of the ranked column.
  std::pair<double, double> interval(std::size_t row) const {
    const double value = by_.number_at(row), low = at(1, row) / at(0, row), high = at(2, row) / at(0, row);
    return is_time_ ? std::pair(value * low, value * high) : std::pair(value / high, value / low);
  }

  const Results& results_;
  const Column& by_;
  bool is_time_;
  std::array<const Column*, 4> columns_{};
};

struct SortOrder {
  const Column* column;
  bool descending;
};

constexpr const char* kStepTime = "step_time_s";

bool has_value(const Column& column, const std::vector<std::size_t>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](std::size_t row) { return is_known(column, row); });
}

SortOrder sort_order_of(const std::string& by, const Table& experiments) {
  const bool ascending = by.ends_with(" asc"), descending = by.ends_with(" desc");
  const std::string name = by.substr(0, by.size() - (ascending ? 4 : descending ? 5 : 0));
  const Column& column = require_column(name, experiments, "--by");
  if (column.is_text())
    throw core::InputError(fmt::format("column '{}' is text; give a column of numbers", name), "--by");
  constexpr std::array<std::string_view, 5> kLessIsBetter{"s", "bytes", "J/token", "USD", "nats"};
  const bool less_is_better = std::find(kLessIsBetter.begin(), kLessIsBetter.end(), column.unit) != kLessIsBetter.end();
  return {&column, descending || (!ascending && !less_is_better)};
}

}  // namespace

void fill_differences(const Results& results, Ranking& ranking) {
  std::vector<std::size_t> rows;
  for (const Ranking::Row& row : ranking.rows) rows.push_back(row.row);
  const auto [common_settings, differing] = Axes(results).split(rows);
  ranking.common_settings = rows.empty() ? "" : Axes::text(common_settings, rows.front());
  for (Ranking::Row& row : ranking.rows) row.distinct_settings = Axes::text(differing, row.row);
}

Ranking rank_experiments(const Results& results, const TopOptions& options) {
  if (options.k < 1) throw core::InputError(fmt::format("must be at least 1, not {}", options.k), "-k");
  const Table& experiments = results.experiments;
  const Condition condition(options.where, experiments);
  SortOrder sort_order = sort_order_of(options.by.value_or(objective_of(results)), experiments);
  const Column& id = require_column("id", experiments, "results");
  const Column& status = require_column("status", experiments, "results");
  const bool ran_only = !condition.mentions("status");

  Ranking ranking;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < experiments.rows(); ++row) {
    if (ran_only && status.text_at(row) != "ran") {
      ++ranking.did_not_run;
    } else if (!condition.matches(row)) {
      ++ranking.filtered_out;
    } else {
      rows.push_back(row);
    }
  }
  if (const Column* time = experiments.find(kStepTime);
      time != nullptr && !has_value(*sort_order.column, rows) && has_value(*time, rows)) {
    ranking.instead_of = sort_order.column->name;
    sort_order = sort_order_of(kStepTime, experiments);
  }
  ranking.by = sort_order.column->name;
  ranking.descending = sort_order.descending;
  ranking.without_value = std::erase_if(rows, [&](std::size_t row) { return !is_known(*sort_order.column, row); });
  ranking.candidates = rows.size();
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    const double left = sort_order.column->number_at(a), right = sort_order.column->number_at(b);
    if (left != right) return sort_order.descending ? left > right : left < right;
    return std::visit([&](const auto& ids) { return ids[a] < ids[b]; }, id.values);
  });
  rows.resize(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(options.k)));
  const Axes axes(results);
  const StepTimeIntervals times(results, *sort_order.column);
  for (const std::size_t row : rows) {
    const double best = sort_order.column->number_at(rows.front()), value = sort_order.column->number_at(row);
    const double relative_gap = sort_order.descending ? best / value - 1 : value / best - 1;
    const Difference difference = difference_of(results, rows.front(), row);
    ranking.rows.push_back({row, axes.layout(row), "", "", 0, times.compare(rows.front(), row),
                            difference.network && !difference.other, relative_gap});
    find_largest_loss(experiments, ranking.rows.back());
  }
  fill_differences(results, ranking);
  return ranking;
}

}  // namespace manyworlds::io
