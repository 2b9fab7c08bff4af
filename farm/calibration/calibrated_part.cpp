#include "farm/calibration/calibrated_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace manyworlds::farm {
namespace {

double predicted(const CalibratedRow& row, Prediction prediction) {
  if (prediction == Prediction::before) return row.before;
  return prediction == Prediction::after ? row.after : row.left_out;
}

/// Returns the mean absolute error of all rows, each with its weight in the fit.
double weighted_error(const CalibratedPart& part, Prediction prediction) {
  double sum = 0;
  for (const CalibratedRow& row : part.rows)
    sum += row.weight * std::abs(predicted(row, prediction) / row.measured - 1);
  return sum;
}

}  // namespace

std::size_t CalibratedPart::fitted_rows() const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const CalibratedRow& row) { return row.weight > 0; }));
}

Errors errors_of(const CalibratedPart& part, const std::string& kind, Prediction prediction) {
  std::vector<ComparedRow> rows;
  for (const CalibratedRow& row : part.rows)
    if (kind.empty() || row.kind == kind) {
      ComparedRow& compared = rows.emplace_back();
      compared.measured = row.measured, compared.predicted = predicted(row, prediction);
    }
  return errors_of(rows);
}

std::vector<double> weights_by_kind(const std::vector<CalibratedRow>& rows) {
  std::map<std::string, double> counts;
  for (const CalibratedRow& row : rows)
    if (row.weight > 0) ++counts[row.kind];
  std::vector<double> weights;
  for (const CalibratedRow& row : rows) weights.push_back(row.weight > 0 ? 1 / std::sqrt(counts[row.kind]) : 0);
  return weights;
}

double rounded(double value) {
  return std::stod(fmt::format("{:.4g}", value));
}

void take_fit(CalibratedPart& part, const experiments::fitting::SelectionProblem& problem,
              const experiments::fitting::SelectedFit& fit) {
  part.fitted.clear(), part.kept.clear();
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const experiments::fitting::Candidate& one = problem.candidates[i];
    const auto chosen = std::find(fit.chosen.begin(), fit.chosen.end(), i);
    if (chosen == fit.chosen.end()) {
      part.kept.push_back(one.key);
      continue;
    }
    const double after = rounded(fit.values[i]);
    part.fitted.push_back({one.key, one.start, after,
                           fit.relative_errors[static_cast<std::size_t>(chosen - fit.chosen.begin())],
                           after >= one.maximum || after <= one.minimum});
  }
  part.taken =
      !part.fitted.empty() && weighted_error(part, Prediction::left_out) < weighted_error(part, Prediction::before);
}

}  // namespace manyworlds::farm
