// What is known of a Pareto front, and whether anything else may be on it: the k-skyband of a set are those that fewer
// than k others dominate (Papadias, Tao, Fu and Seeger 2005, "Progressive skyline computation in database systems",
// section 5); of k = 1 the Pareto front.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace manyworlds::farm {

/// A value of the objective and one of the column beside it, of both of which less is better.
struct TwoValues {
  double objective = -std::numeric_limits<double>::infinity(), other = objective;
};

class Skyband {
 public:
  /// Of those that fewer than `k` others dominate; one dominates another also if the other's objective is better by no
  /// more than the share `gap`.
  Skyband(std::size_t k, double gap) : k_(k), gap_(gap) {}

  /// Adds the result of an experiment whose objective has this bound.
  void add(double bound, TwoValues result);
  /// Returns whether fewer than k results dominate one that is no better than `at_best`. Only those count whose bounds
  /// of the objective are lower: then what is left out is the same whatever else has been added. Infinity, no value, is
  /// always dominated.
  bool may_have(TwoValues at_best) const;
  /// Returns the k-th best objective of the results that are no worse than `other` in the other column; infinity if
  /// there are fewer.
  double rival_of(double other) const;

 private:
  struct Result {
    double bound, needed;  // what an objective must not exceed for this one not to dominate it
    TwoValues values;
  };
  std::size_t k_;
  double gap_;
  std::vector<Result> results_;  // ascending in `needed`
};

}  // namespace manyworlds::farm
