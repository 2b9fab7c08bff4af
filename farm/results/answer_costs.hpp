// The columns of an answer that say what a token and a training run cost.
#pragma once

#include <string>
#include <vector>

#include "experiments/analysis/costs.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// One row's costs, and whether it ran: of one that did not they are those of a step of a second, which tell what
/// figures it has.
struct RowCosts {
  experiments::Costs costs;
  bool ran = false;
};

/// A column for each cost that some row has the figures of, or that the sweep ranks by.
std::vector<io::Column> cost_columns(const std::vector<const RowCosts*>& rows, const std::string& objective);

}  // namespace manyworlds::farm
