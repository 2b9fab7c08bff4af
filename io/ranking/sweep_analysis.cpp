#include "io/ranking/sweep_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/base/error.hpp"
#include "io/results/known_value.hpp"

namespace manyworlds::io {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kFirstFailures = 5;

/// A column as category codes: categories in ascending order for numbers, by first appearance for text.
struct CategoricalColumn {
  std::vector<std::uint32_t> codes;
  std::vector<std::string> values;
};

CategoricalColumn encode_column(const Column& column) {
  CategoricalColumn result;
  std::map<std::string, std::uint32_t> known;
  std::vector<std::size_t> first;
  for (std::size_t row = 0; row < column.rows(); ++row) {
    const auto [at, is_new] = known.try_emplace(column.text_at(row), static_cast<std::uint32_t>(known.size()));
    result.codes.push_back(at->second);
    if (!is_new) continue;
    result.values.push_back(at->first);
    first.push_back(row);
  }
  if (column.is_text()) return result;
  std::vector<std::uint32_t> order(first.size()), place(first.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double left = column.number_at(first[a]), right = column.number_at(first[b]);
    if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);  // NaN comes last
    return left < right;
  });
  std::vector<std::string> values;
  for (const std::uint32_t code : order) {
    place[code] = static_cast<std::uint32_t>(values.size());
    values.push_back(result.values[code]);
  }
  for (std::uint32_t& code : result.codes) code = place[code];
  result.values = std::move(values);
  return result;
}

std::vector<bool> ran(const Results& results) {
  const Column* status = results.experiments.find("status");
  std::vector<bool> rows(results.experiments.rows(), true);
  for (std::size_t row = 0; row < rows.size() && status != nullptr; ++row) rows[row] = status->text_at(row) == "ran";
  return rows;
}

/// Returns a quantile of sorted `values`, interpolated linearly.
double quantile(const std::vector<double>& values, double share) {
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

/// A row that ran: its code on the axis, and its value of the objective.
struct CompletedRow {
  std::uint32_t code;
  double value;
};

/// Groups the experiments that ran by their codes on every axis except `excluded_axis`.
std::vector<std::vector<CompletedRow>> matched_sets(const std::vector<CategoricalColumn>& axes,
                                                    std::size_t excluded_axis, const std::vector<bool>& rows,
                                                    const Column& objective) {
  std::unordered_map<std::string, std::vector<CompletedRow>> sets;
  std::vector<std::string> order;
  std::string key;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row] || std::isnan(objective.number_at(row))) continue;
    key.clear();
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      if (axis != excluded_axis)
        key.append(reinterpret_cast<const char*>(&axes[axis].codes[row]), sizeof(std::uint32_t));
    const auto [set, is_new] = sets.try_emplace(key);
    if (is_new) order.push_back(key);
    set->second.push_back({axes[excluded_axis].codes[row], objective.number_at(row)});
  }
  // The groups are in row order, since sums of doubles depend on the order.
  std::vector<std::vector<CompletedRow>> result;
  for (const std::string& each : order) result.push_back(std::move(sets[each]));
  return result;
}

void add_matched(AxisEffect& effect, const std::vector<std::vector<CompletedRow>>& sets,
                 const RankingObjective& objective) {
  std::vector<double> logs(effect.values.size(), 0);
  for (const std::vector<CompletedRow>& set : sets) {
    if (set.size() < 2) continue;
    double best = set.front().value;
    for (const CompletedRow& one : set)
      if (objective.better(one.value, best)) best = one.value;
    for (const CompletedRow& one : set) {
      AxisValue& value = effect.values[one.code];
      ++value.sets;
      if (one.value == best) ++value.wins;
      logs[one.code] += std::log(objective.share(one.value, best));
    }
  }
  for (std::size_t i = 0; i < logs.size(); ++i)
    effect.values[i].relative_to_best =
        effect.values[i].sets == 0 ? kNaN : std::exp(logs[i] / static_cast<double>(effect.values[i].sets));
}

void add_counts(AxisEffect& effect, const CategoricalColumn& axis, const Results& results,
                const std::vector<bool>& rows, const RankingObjective& objective) {
  std::vector<std::vector<double>> values_by_code(effect.values.size());
  const Column* status = results.experiments.find("status");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    AxisValue& value = effect.values[axis.codes[row]];
    ++value.experiments;
    if (status != nullptr && status->text_at(row) == "out_of_memory") ++value.out_of_memory;
    if (!rows[row] || std::isnan(objective.column->number_at(row))) continue;
    ++value.ran;
    values_by_code[axis.codes[row]].push_back(objective.column->number_at(row));
  }
  for (std::size_t i = 0; i < values_by_code.size(); ++i) {
    auto& subset = values_by_code[i];
    std::sort(subset.begin(), subset.end());
    AxisValue& value = effect.values[i];
    value.best = subset.empty() ? kNaN : objective.descending ? subset.back() : subset.front();
    value.lower = subset.empty() ? kNaN : quantile(subset, 0.25);
    value.median = subset.empty() ? kNaN : quantile(subset, 0.5);
    value.upper = subset.empty() ? kNaN : quantile(subset, 0.75);
  }
}

double worst_value_loss(const AxisEffect& effect, const RankingObjective& objective) {
  double best = kNaN, worst = kNaN;
  for (const AxisValue& value : effect.values) {
    if (value.ran == 0) continue;
    if (std::isnan(best) || objective.better(value.best, best)) best = value.best;
    if (std::isnan(worst) || objective.better(worst, value.best)) worst = value.best;
  }
  return std::isnan(best) ? 0 : 1 - objective.share(worst, best);
}

}  // namespace

namespace {

/// Finds what all values of an axis begin and end with, up to a whole option, if one of them is too long for a line.
void find_same_ends(Axes::Axis& axis) {
  constexpr std::size_t kLong = 80;
  const Column& column = *axis.column;
  if (!column.is_text() || column.rows() == 0) return;
  const std::string first = column.text_at(0);
  std::size_t front = first.size(), back = first.size(), longest = 0, shortest = first.size();
  for (std::size_t row = 0; row < column.rows(); ++row) {
    const std::string one = column.text_at(row);
    const auto same = [](auto a, auto a_end, auto b, auto b_end) {
      return static_cast<std::size_t>(std::mismatch(a, a_end, b, b_end).first - a);
    };
    front = std::min(front, same(first.begin(), first.end(), one.begin(), one.end()));
    back = std::min(back, same(first.rbegin(), first.rend(), one.rbegin(), one.rend()));
    longest = std::max(longest, one.size()), shortest = std::min(shortest, one.size());
  }
  if (longest <= kLong || front == first.size()) return;
  while (front > 0 && std::string_view("{[,").find(first[front - 1]) == std::string_view::npos) --front;
  if (front < shortest && first[front] == ' ') ++front;
  back = std::min(back, shortest - std::min(front, shortest));
  while (back > 0 && std::string_view("}],").find(first[first.size() - back]) == std::string_view::npos) --back;
  axis.same_front = front, axis.same_back = back;
}

}  // namespace

Axes::Axes(const Results& results) {
  const auto leaf = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::map<std::string, int> leaf_counts;
  for (const std::string& axis : results.axis_names) ++leaf_counts[leaf(axis)];
  for (const std::string& axis : results.axis_names) {
    if (std::any_of(results.axis_names.begin(), results.axis_names.end(),
                    [&](const std::string& other) { return axis.starts_with(other + "."); }))
      continue;
    const Column* column = results.experiments.find(axis);
    MANYWORLDS_CHECK(column, "axis '{}' has no column", axis);
    axes_.push_back({axis, leaf_counts[leaf(axis)] == 1 ? leaf(axis) : axis, column});
    find_same_ends(axes_.back());
  }
}

std::string Axes::Axis::value(std::size_t row) const {
  const std::string text = column->text_at(row);
  if (text.empty()) return "\"\"";
  if (same_front + same_back == 0) return text;
  return fmt::format("…{}…", text.substr(same_front, text.size() - same_front - same_back));
}

std::pair<std::vector<Axes::Axis>, std::vector<Axes::Axis>> Axes::split(const std::vector<std::size_t>& rows) const {
  std::pair<std::vector<Axis>, std::vector<Axis>> result;
  for (const Axis& axis : axes_) {
    const bool equal_in_all = rows.size() > 1 && std::all_of(rows.begin(), rows.end(), [&](std::size_t row) {
                                return axis.column->text_at(row) == axis.column->text_at(rows.front());
                              });
    (equal_in_all ? result.first : result.second).push_back(axis);
  }
  return result;
}

std::string Axes::text(const std::vector<Axis>& axes, std::size_t row) {
  std::string text;
  for (const Axis& axis : axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.short_name, axis.value(row));
  return text;
}

std::vector<AxisEffect> axis_effects(const Results& results, const RankingObjective& objective) {
  const std::vector<bool> rows = ran(results);
  std::vector<CategoricalColumn> axes;
  std::vector<AxisEffect> effects;
  const Axes named(results);
  for (const Axes::Axis& axis : named.all()) {
    axes.push_back(encode_column(*axis.column));
    effects.push_back({axis.name, axis.short_name, {}, 0});
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const std::string& value : axes[i].values) effects[i].values.push_back({.value = value});
    add_counts(effects[i], axes[i], results, rows, objective);
    add_matched(effects[i], matched_sets(axes, i, rows, *objective.column), objective);
    effects[i].worst_value_loss = worst_value_loss(effects[i], objective);
  }
  std::erase_if(effects, [](const AxisEffect& effect) { return effect.values.size() < 2; });
  std::stable_sort(effects.begin(), effects.end(),
                   [](const AxisEffect& a, const AxisEffect& b) { return a.worst_value_loss > b.worst_value_loss; });
  return effects;
}

std::vector<std::size_t> pareto_front(const Results& results, const Column& cost, const Column& gain) {
  const std::vector<bool> subset = ran(results);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < subset.size(); ++row)
    if (subset[row] && is_known(cost, row) && is_known(gain, row)) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    const double left = cost.number_at(a), right = cost.number_at(b);
    return left != right ? left < right : gain.number_at(a) > gain.number_at(b);
  });
  std::vector<std::size_t> front;
  for (const std::size_t row : rows)
    if (front.empty() || gain.number_at(row) > gain.number_at(front.back())) front.push_back(row);
  return front;
}

std::vector<std::pair<std::size_t, double>> nearly_fitting(const Results& results, std::size_t max_rows) {
  const Table& table = results.experiments;
  const Column *status = table.find("status"), *peak = table.find("memory_peak_bytes"),
               *available = table.find("gpu_memory_bytes");
  std::vector<std::pair<std::size_t, double>> rows;
  if (status == nullptr || peak == nullptr || available == nullptr) return rows;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (status->text_at(row) == "out_of_memory")
      rows.emplace_back(row, peak->number_at(row) / available->number_at(row));
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  rows.resize(std::min(rows.size(), max_rows));
  return rows;
}

std::vector<FailureGroup> group_failures(const Results& results) {
  std::vector<FailureGroup> result;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    const std::string status = results.experiments.text_at("status", row);
    if (status != "failed" && status != "too_large") continue;
    const std::string reason = results.experiments.text_at("reason", row);
    const auto [at, is_new] = known.try_emplace({status, reason}, result.size());
    if (is_new) result.push_back({status, reason, 0, {}});
    FailureGroup& subset = result[at->second];
    ++subset.count;
    if (subset.first.size() < kFirstFailures) subset.first.push_back(row);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const FailureGroup& a, const FailureGroup& b) { return a.count > b.count; });
  return result;
}

}  // namespace manyworlds::io
