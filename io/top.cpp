#include "io/top.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "core/error.hpp"
#include "io/condition.hpp"

namespace manyworlds::io {

namespace {

constexpr std::array<std::string_view, 13> kBreakdown{
    "forward_s",    "backward_s",   "recompute_s",  "optimizer_s",  "host_s",   "slowed_s", "exposed_tp_s",
    "exposed_dp_s", "exposed_pp_s", "exposed_cp_s", "exposed_ep_s", "bubble_s", "stall_s"};

std::string text_at(const Column& column, std::size_t row) {
  return std::visit([row](const auto& values) { return fmt::format("{}", values[row]); }, column.values);
}

/// "tp" for "strategy.tp", unless two axes end alike.
std::vector<std::string> short_names(const std::vector<std::string>& axes) {
  const auto leaf = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::map<std::string, int> uses;
  for (const std::string& axis : axes) ++uses[leaf(axis)];
  std::vector<std::string> names;
  for (const std::string& axis : axes) names.push_back(uses[leaf(axis)] == 1 ? leaf(axis) : axis);
  return names;
}

std::string layout_of(const Results& results, const std::vector<std::string>& names, std::size_t row) {
  std::string layout;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // A leaf of an axis over mappings stands in that axis' label already.
    const bool leaf = std::any_of(results.axis_names.begin(), results.axis_names.end(), [&](const std::string& other) {
      return results.axis_names[i].starts_with(other + ".");
    });
    if (leaf) continue;
    const Column* axis = results.experiments.find(results.axis_names[i]);
    MANYWORLDS_CHECK(axis, "axis '{}' has no column", results.axis_names[i]);
    layout += fmt::format("{}{}={}", layout.empty() ? "" : " ", names[i], text_at(*axis, row));
  }
  return layout;
}

void find_bound(const Table& experiments, Ranking::Row& row) {
  double largest = 0;
  for (const std::string_view name : kBreakdown) {
    const Column* column = experiments.find(name);
    const double part = column ? column->number_at(row.row) : 0;
    if (!(part > largest)) continue;
    largest = part;
    row.bound_by = name.substr(0, name.size() - 2);
  }
  const Column* step = experiments.find("step_time_s");
  if (step && largest > 0) row.bound_share = largest / step->number_at(row.row);
}

struct Order {
  const Column* column;
  bool descending;
};

Order order_of(const std::string& by, const Table& experiments) {
  const bool ascending = by.ends_with(" asc"), descending = by.ends_with(" desc");
  const std::string name = by.substr(0, by.size() - (ascending ? 4 : descending ? 5 : 0));
  const Column& column = column_called(name, experiments, "--by");
  if (column.is_text())
    throw core::InputError(fmt::format("column '{}' is text; give a column of numbers", name), "--by");
  const bool less_is_better = column.unit == "s" || column.unit == "bytes";
  return {&column, descending || (!ascending && !less_is_better)};
}

}  // namespace

Ranking rank_experiments(const Results& results, const TopOptions& options) {
  if (options.k < 1) throw core::InputError(fmt::format("must be at least 1, not {}", options.k), "-k");
  const Table& experiments = results.experiments;
  const Condition condition(options.where, experiments);
  const Order order = order_of(options.by, experiments);
  const Column& id = column_called("id", experiments, "results");
  const Column& status = column_called("status", experiments, "results");
  const bool ran_only = !condition.names("status");

  Ranking ranking;
  ranking.by = order.column->name;
  ranking.descending = order.descending;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < experiments.rows(); ++row) {
    if (ran_only && text_at(status, row) != "ran") {
      ++ranking.did_not_run;
    } else if (!condition.holds(row)) {
      ++ranking.refused;
    } else if (std::isnan(order.column->number_at(row))) {
      ++ranking.without_value;
    } else {
      rows.push_back(row);
    }
  }
  ranking.candidates = rows.size();
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    const double left = order.column->number_at(a), right = order.column->number_at(b);
    if (left != right) return order.descending ? left > right : left < right;
    return std::visit([&](const auto& ids) { return ids[a] < ids[b]; }, id.values);
  });
  rows.resize(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(options.k)));
  const std::vector<std::string> names = short_names(results.axis_names);
  for (const std::size_t row : rows) {
    ranking.rows.push_back({row, layout_of(results, names, row), "", 0});
    find_bound(experiments, ranking.rows.back());
  }
  return ranking;
}

}  // namespace manyworlds::io
