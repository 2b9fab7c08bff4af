// The objective of experiments as numbers of which less is better, whatever the column says.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Objectives are computed in floating point: what is nearer than this counts as equal, and is simulated.
inline constexpr double kObjectiveRounding = 1e-12;

/// Returns a value of the objective as one of which less is better, or such a one as the objective has it.
double minimised(double value, const std::string& objective);

/// Returns, by row, the objective, or the column of a front: as it is if less is better, with its sign changed if more
/// is; infinity for a row without a value, or of a table without the column.
std::vector<double> minimised_objective(const io::Results& rows, const std::string& objective);

/// Returns what a minimised value must not exceed to be better than `value` by more than a share of it.
double better_by(double value, double share);

/// Returns by what share the value `bound` is better than `value`, both minimised; 0 if it is not.
double share_between(double bound, double value);

}  // namespace manyworlds::farm
