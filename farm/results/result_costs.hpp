// The result columns for the costs of a token and of a training run.
#pragma once

#include <string>
#include <vector>

#include "experiments/analysis/costs.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The costs of one row, and whether it ran. The costs of an experiment that did not run are computed for a step of one
/// second; they only show which cost inputs it has.
struct RowCosts {
  experiments::Costs costs;
  bool ran = false;
};

/// Returns a column for each cost whose inputs some row has, or by which the sweep is ranked.
std::vector<io::Column> cost_columns(const std::vector<const RowCosts*>& rows, const std::string& objective);

}  // namespace manyworlds::farm
