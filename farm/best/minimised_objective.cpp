#include "farm/best/minimised_objective.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/sweep/best.hpp"

namespace manyworlds::farm {

double minimised(double value, const std::string& objective) {
  return experiments::ordered_column(objective).more_is_better ? -value : value;
}

std::vector<double> minimised_objective(const io::Results& rows, const std::string& objective) {
  const io::Column* column = rows.experiments.find(objective);
  std::vector<double> values;
  for (std::size_t row = 0; row < rows.experiments.rows(); ++row) {
    const double value = column != nullptr ? column->number_at(row) : std::numeric_limits<double>::quiet_NaN();
    values.push_back(std::isnan(value) ? std::numeric_limits<double>::infinity() : minimised(value, objective));
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
