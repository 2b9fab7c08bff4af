#include "farm/sweep/minimised_objective.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

std::vector<double> minimised_objective(const io::Results& rows, const std::string& objective) {
  const bool more_is_better = experiments::objective_named(objective).more_is_better;
  const io::Column& column = *rows.experiments.find(objective);
  std::vector<double> values;
  for (std::size_t row = 0; row < rows.experiments.rows(); ++row) {
    const double value = column.number_at(row);
    values.push_back(std::isnan(value) ? std::numeric_limits<double>::infinity() : more_is_better ? -value : value);
  }
  return values;
}

double better_by(double value, double share) {
  return value - share * std::abs(value);
}

double share_between(double bound, double value) {
  return bound < value ? (value - bound) / std::abs(value) : 0;
}

}  // namespace manyworlds::farm
