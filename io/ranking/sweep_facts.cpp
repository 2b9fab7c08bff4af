#include "io/ranking/sweep_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/base/error.hpp"

namespace manyworlds::io {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kFirstFailures = 5;

/// A column's values as numbers of distinct ones: numbers ascending, text by first appearance.
struct Coded {
  std::vector<std::uint32_t> codes;
  std::vector<std::string> values;
};

Coded coded(const Column& column) {
  Coded made;
  std::map<std::string, std::uint32_t> known;
  std::vector<std::size_t> first;
  for (std::size_t row = 0; row < column.rows(); ++row) {
    const auto [at, is_new] = known.try_emplace(column.text_at(row), static_cast<std::uint32_t>(known.size()));
    made.codes.push_back(at->second);
    if (!is_new) continue;
    made.values.push_back(at->first);
    first.push_back(row);
  }
  if (column.is_text()) return made;
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
    values.push_back(made.values[code]);
  }
  for (std::uint32_t& code : made.codes) code = place[code];
  made.values = std::move(values);
  return made;
}

std::vector<bool> ran(const Results& results) {
  const Column* status = results.experiments.find("status");
  std::vector<bool> rows(results.experiments.rows(), true);
  for (std::size_t row = 0; row < rows.size() && status != nullptr; ++row) rows[row] = status->text_at(row) == "ran";
  return rows;
}

/// The value that a share of sorted `values` lies at or before, between two of them in proportion.
double quantile(const std::vector<double>& values, double share) {
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

/// One row that ran: its value of the axis, and its goal.
struct Ran {
  std::uint32_t code;
  double value;
};

/// Experiments that ran, by the codes of all axes but one.
std::vector<std::vector<Ran>> matched_sets(const std::vector<Coded>& axes, std::size_t but,
                                           const std::vector<bool>& rows, const Column& goal) {
  std::unordered_map<std::string, std::vector<Ran>> sets;
  std::vector<std::string> order;
  std::string key;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row] || std::isnan(goal.number_at(row))) continue;
    key.clear();
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      if (axis != but) key.append(reinterpret_cast<const char*>(&axes[axis].codes[row]), sizeof(std::uint32_t));
    const auto [set, is_new] = sets.try_emplace(key);
    if (is_new) order.push_back(key);
    set->second.push_back({axes[but].codes[row], goal.number_at(row)});
  }
  // In the order of rows: sums of doubles depend on it.
  std::vector<std::vector<Ran>> made;
  for (const std::string& each : order) made.push_back(std::move(sets[each]));
  return made;
}

void add_matched(AxisEffect& effect, const std::vector<std::vector<Ran>>& sets, const Goal& goal) {
  std::vector<double> logs(effect.values.size(), 0);
  for (const std::vector<Ran>& set : sets) {
    if (set.size() < 2) continue;
    double best = set.front().value;
    for (const Ran& one : set)
      if (goal.better(one.value, best)) best = one.value;
    for (const Ran& one : set) {
      AxisValue& value = effect.values[one.code];
      ++value.sets;
      if (one.value == best) ++value.won;
      logs[one.code] += std::log(goal.share(one.value, best));
    }
  }
  for (std::size_t i = 0; i < logs.size(); ++i)
    effect.values[i].beside_best =
        effect.values[i].sets == 0 ? kNone : std::exp(logs[i] / static_cast<double>(effect.values[i].sets));
}

void add_counts(AxisEffect& effect, const Coded& axis, const Results& results, const std::vector<bool>& rows,
                const Goal& goal) {
  std::vector<std::vector<double>> figures(effect.values.size());
  const Column* status = results.experiments.find("status");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    AxisValue& value = effect.values[axis.codes[row]];
    ++value.experiments;
    if (status != nullptr && status->text_at(row) == "out_of_memory") ++value.out_of_memory;
    if (!rows[row] || std::isnan(goal.column->number_at(row))) continue;
    ++value.ran;
    figures[axis.codes[row]].push_back(goal.column->number_at(row));
  }
  for (std::size_t i = 0; i < figures.size(); ++i) {
    auto& of = figures[i];
    std::sort(of.begin(), of.end());
    AxisValue& value = effect.values[i];
    value.best = of.empty() ? kNone : goal.descending ? of.back() : of.front();
    value.lower = of.empty() ? kNone : quantile(of, 0.25);
    value.median = of.empty() ? kNone : quantile(of, 0.5);
    value.upper = of.empty() ? kNone : quantile(of, 0.75);
  }
}

double wrong_choice(const AxisEffect& effect, const Goal& goal) {
  double best = kNone, worst = kNone;
  for (const AxisValue& value : effect.values) {
    if (value.ran == 0) continue;
    if (std::isnan(best) || goal.better(value.best, best)) best = value.best;
    if (std::isnan(worst) || goal.better(worst, value.best)) worst = value.best;
  }
  return std::isnan(best) ? 0 : 1 - goal.share(worst, best);
}

}  // namespace

Axes::Axes(const Results& results) {
  const auto leaf = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::map<std::string, int> uses;
  for (const std::string& axis : results.axis_names) ++uses[leaf(axis)];
  for (const std::string& axis : results.axis_names) {
    if (std::any_of(results.axis_names.begin(), results.axis_names.end(),
                    [&](const std::string& other) { return axis.starts_with(other + "."); }))
      continue;
    const Column* column = results.experiments.find(axis);
    MANYWORLDS_CHECK(column, "axis '{}' has no column", axis);
    axes_.push_back({axis, uses[leaf(axis)] == 1 ? leaf(axis) : axis, column});
  }
}

std::pair<std::vector<Axes::Axis>, std::vector<Axes::Axis>> Axes::split(const std::vector<std::size_t>& rows) const {
  std::pair<std::vector<Axis>, std::vector<Axis>> made;
  for (const Axis& axis : axes_) {
    const bool alike = rows.size() > 1 && std::all_of(rows.begin(), rows.end(), [&](std::size_t row) {
                         return axis.column->text_at(row) == axis.column->text_at(rows.front());
                       });
    (alike ? made.first : made.second).push_back(axis);
  }
  return made;
}

std::string Axes::text(const std::vector<Axis>& axes, std::size_t row) {
  std::string text;
  for (const Axis& axis : axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.short_name, axis.column->text_at(row));
  return text;
}

std::vector<AxisEffect> axis_effects(const Results& results, const Goal& goal) {
  const std::vector<bool> rows = ran(results);
  std::vector<Coded> axes;
  std::vector<AxisEffect> effects;
  const Axes named(results);
  for (const Axes::Axis& axis : named.all()) {
    axes.push_back(coded(*axis.column));
    effects.push_back({axis.name, axis.short_name, {}, 0});
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const std::string& value : axes[i].values) effects[i].values.push_back({.value = value});
    add_counts(effects[i], axes[i], results, rows, goal);
    add_matched(effects[i], matched_sets(axes, i, rows, *goal.column), goal);
    effects[i].wrong_choice = wrong_choice(effects[i], goal);
  }
  std::erase_if(effects, [](const AxisEffect& effect) { return effect.values.size() < 2; });
  std::stable_sort(effects.begin(), effects.end(),
                   [](const AxisEffect& a, const AxisEffect& b) { return a.wrong_choice > b.wrong_choice; });
  return effects;
}

std::vector<std::size_t> pareto_front(const Results& results, const Column& cost, const Column& gain) {
  const std::vector<bool> of = ran(results);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < of.size(); ++row)
    if (of[row] && !std::isnan(cost.number_at(row)) && !std::isnan(gain.number_at(row))) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    const double left = cost.number_at(a), right = cost.number_at(b);
    return left != right ? left < right : gain.number_at(a) > gain.number_at(b);
  });
  std::vector<std::size_t> front;
  for (const std::size_t row : rows)
    if (front.empty() || gain.number_at(row) > gain.number_at(front.back())) front.push_back(row);
  return front;
}

std::vector<std::pair<std::size_t, double>> nearly_fitting(const Results& results, std::size_t most) {
  const Table& table = results.experiments;
  const Column *status = table.find("status"), *peak = table.find("memory_peak_bytes"),
               *there = table.find("gpu_memory_bytes");
  std::vector<std::pair<std::size_t, double>> rows;
  if (status == nullptr || peak == nullptr || there == nullptr) return rows;
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (status->text_at(row) == "out_of_memory") rows.emplace_back(row, peak->number_at(row) / there->number_at(row));
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

std::vector<Failures> failures_of(const Results& results) {
  std::vector<Failures> made;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    const std::string status = results.experiments.text_at("status", row);
    if (status != "failed" && status != "too_large") continue;
    const std::string reason = results.experiments.text_at("reason", row);
    const auto [at, is_new] = known.try_emplace({status, reason}, made.size());
    if (is_new) made.push_back({status, reason, 0, {}});
    Failures& of = made[at->second];
    ++of.count;
    if (of.first.size() < kFirstFailures) of.first.push_back(row);
  }
  std::stable_sort(made.begin(), made.end(), [](const Failures& a, const Failures& b) { return a.count > b.count; });
  return made;
}

}  // namespace manyworlds::io
