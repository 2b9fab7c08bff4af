// Analysis of a whole sweep beyond its ranking: the effect of every axis, the Pareto front, and the experiments that
// did not run. Pictures and pages are drawn from it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::io {

/// The axes of a run, with short names for display.
class Axes {
 public:
  struct Axis {
    std::string name, short_name;  // "strategy.tp"; "tp", unless two axes end with it
    const Column* column;
    std::size_t same_front = 0, same_back = 0;  // characters that all of its long texts begin and end with

    /// Returns a row's value, "" in quotation marks; of long texts, such as architectures, what is not the same in all
    /// rows.
    std::string value(std::size_t row) const;
  };
  explicit Axes(const Results& results);

  /// Returns the axes in the order of the sweep, without the leaves of an axis over mappings: its label includes them.
  const std::vector<Axis>& all() const { return axes_; }
  /// Returns the layout of a row in one line: "tp=4 pp=2 …".
  std::string layout(std::size_t row) const { return text(axes_, row); }
  static std::string text(const std::vector<Axis>& axes, std::size_t row);
  /// Returns the axes on which all `rows` agree, and the other axes. A single row agrees on none.
  std::pair<std::vector<Axis>, std::vector<Axis>> split(const std::vector<std::size_t>& rows) const;

 private:
  std::vector<Axis> axes_;
};

/// The column by which experiments are ranked, and whether more or less is better.
struct RankingObjective {
  const Column* column = nullptr;
  bool descending = true;
  bool better(double a, double b) const { return descending ? a > b : a < b; }
  /// Returns the quality of `value` relative to `best`: at most 1 if `best` is the best value.
  double share(double value, double best) const { return descending ? value / best : best / value; }
};

/// The experiments with one value of an axis: how many ran, and how good those are.
struct AxisValue {
  std::string value;
  std::size_t experiments = 0, ran = 0, out_of_memory = 0;
  double best = 0, upper = 0, median = 0, lower = 0;  // of the objective, with quartiles; NaN if none ran
  /// Groups of experiments that differ in this axis alone and of which two or more ran: the number of groups with this
  /// value, the number in which it was best (or equal to the best), and the geometric mean of its quality relative to
  /// the best.
  std::size_t sets = 0, wins = 0;
  double relative_to_best = 0;
};

struct AxisEffect {
  std::string axis, name;         // name: the short name
  std::vector<AxisValue> values;  // numbers ascending, text in the order of the sweep
  /// The loss from choosing the worst value while all other axes are optimised: 1 - (its best) / (the best of all).
  double worst_value_loss = 0;
};

/// Returns the effect of every axis that has two or more values and is not a leaf, largest loss first.
std::vector<AxisEffect> axis_effects(const Results& results, const RankingObjective& objective);

/// Returns the Pareto-optimal rows among those that ran: no other row has at least as much `gain` (more is better) for
/// less `cost`, or more gain for no more cost. The rows ascend in both columns; of rows equal in both, the first is
/// kept.
std::vector<std::size_t> pareto_front(const Results& results, const Column& cost, const Column& gain);

/// Returns the rows that ran out of memory, those that lack least first, with required over available memory (1.1: a
/// tenth too much).
std::vector<std::pair<std::size_t, double>> nearly_fitting(const Results& results, std::size_t max_rows);

/// A reason for which experiments failed, and the experiments.
struct FailureGroup {
  std::string status, reason;
  std::size_t count = 0;
  std::vector<std::size_t> first;  // the first few rows
};
/// Returns the failures grouped by status and reason, most frequent first.
std::vector<FailureGroup> group_failures(const Results& results);

}  // namespace manyworlds::io
