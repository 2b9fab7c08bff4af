// What a whole sweep tells besides its ranking: what every axis does, what is best for what it takes, and what did not
// run. Pictures and pages are made of it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::io {

/// The axes of a run, by names that people use.
class Axes {
 public:
  struct Axis {
    std::string name, short_name;  // "strategy.tp"; "tp", unless two end alike
    const Column* column;
  };
  explicit Axes(const Results& results);

  /// In the order of the sweep, without leaves of an axis over mappings: its label has them already.
  const std::vector<Axis>& all() const { return axes_; }
  /// The layout of a row in one line: "tp=4 pp=2 …".
  std::string layout(std::size_t row) const { return text(axes_, row); }
  static std::string text(const std::vector<Axis>& axes, std::size_t row);
  /// The axes in which those rows are all alike, and the others; of one row none is alike.
  std::pair<std::vector<Axis>, std::vector<Axis>> split(const std::vector<std::size_t>& rows) const;

 private:
  std::vector<Axis> axes_;
};

/// How good the values of a column are: more is better, or less.
struct Goal {
  const Column* column = nullptr;
  bool descending = true;
  bool better(double a, double b) const { return descending ? a > b : a < b; }
  /// How good `value` is beside `best`: at most 1 if that is best.
  double share(double value, double best) const { return descending ? value / best : best / value; }
};

/// What became of the experiments with one value of an axis, and how good those are that ran.
struct AxisValue {
  std::string value;
  std::size_t experiments = 0, ran = 0, out_of_memory = 0;
  double best = 0, upper = 0, median = 0, lower = 0;  // of the goal's column; quartiles; NaN where none ran
  /// Among experiments that differ in this axis alone, of which two or more ran: in how many sets of them it took part,
  /// in how many it was best (or as good as the best), and how good it was beside the best, as a geometric mean.
  std::size_t sets = 0, won = 0;
  double beside_best = 0;
};

struct AxisEffect {
  std::string axis, name;         // name: the short one
  std::vector<AxisValue> values;  // numbers ascending, text in the order of the sweep
  /// What the worst value costs if all else is chosen as well as can be: 1 - its best over the best of all.
  double wrong_choice = 0;
};

/// Of every axis of two or more values that is no leaf, those first whose wrong choice costs most.
std::vector<AxisEffect> axis_effects(const Results& results, const Goal& goal);

/// Rows that ran which no other beats in both: at least as much of `gain` (more is better) for less of `cost`, or more
/// for no more of it. Ascending in both; of rows equal in both the first.
std::vector<std::size_t> pareto_front(const Results& results, const Column& cost, const Column& gain);

/// Rows out of memory, by how far: those that lack least first, with how much of what there is they need (1.1: a tenth
/// too much).
std::vector<std::pair<std::size_t, double>> nearly_fitting(const Results& results, std::size_t most);

/// A reason for which experiments failed, and which.
struct Failures {
  std::string status, reason;
  std::size_t count = 0;
  std::vector<std::size_t> first;  // rows, a few
};
/// The most frequent first.
std::vector<Failures> failures_of(const Results& results);

}  // namespace manyworlds::io
