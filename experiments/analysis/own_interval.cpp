#include "experiments/analysis/own_interval.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

constexpr double kSmallestDeviation = 1e-3;             // of a logarithm: no step time is measured better
constexpr double kNormalQuantile = 1.2815515655446004;  // of 0.9
static_assert(Uncertainty::kCoverage == 0.8, "kNormalQuantile is of the upper end of 80 %");

}  // namespace

double student_t_share(double t, std::size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle), sine = std::sin(angle);
  double sum = 0;  // of the share between -t and t
  if (degrees % 2 == 1) {
    double term = cosine;
    for (std::size_t power = 1; power + 2 <= degrees; power += 2) {
      sum += term;
      term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
    }
    sum = 2 / std::numbers::pi * (angle + sine * sum);
  } else {
    double term = 1;
    for (std::size_t power = 0; power + 2 <= degrees; power += 2) {
      sum += term;
      term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
    }
    sum *= sine;
  }
  return (1 + sum) / 2;
}

double student_t_quantile(double share, std::size_t degrees) {
  MANYWORLDS_CHECK(share > 0.5 && share < 1 && degrees > 0, "{} of {}", share, degrees);
  double low = 0, high = 1;
  while (student_t_share(high, degrees) < share) high *= 2;
  for (int halving = 0; halving < 100; ++halving) {
    const double middle = (low + high) / 2;
    (student_t_share(middle, degrees) < share ? low : high) = middle;
  }
  return high;
}

double OwnInterval::share_below(double ratio) const {
  return student_t_share((std::log(ratio) - center) / scale, degrees);
}

OwnInterval own_interval(const Interval& published, const Uncertainty::Scatter& scatter,
                         const std::vector<double>& own_logs) {
  MANYWORLDS_CHECK(!own_logs.empty(), "nothing was measured");
  const auto count = static_cast<double>(own_logs.size());
  double mean = 0, squares = 0;
  for (const double one : own_logs) mean += one / count;
  for (const double one : own_logs) squares += (one - mean) * (one - mean);

  // Of a run of a family that nobody knows: between families, and within one.
  const double prior_center = (std::log(published.low) + std::log(published.high)) / 2;
  const double prior_deviation =
      std::max((std::log(published.high) - std::log(published.low)) / (2 * kNormalQuantile), kSmallestDeviation);
  const double within =
      scatter.families > 0 ? std::clamp(scatter.deviation, kSmallestDeviation, prior_deviation) : prior_deviation;
  const double between_variance =
      std::max(prior_deviation * prior_deviation - within * within, prior_deviation * prior_deviation / 4);

  // The scatter within the user's own family: what is usual, and the user's own runs the more the more they are.
  OwnInterval result;
  result.degrees = kScatterDegrees + own_logs.size() - 1;
  const double variance =
      (static_cast<double>(kScatterDegrees) * within * within + squares) / static_cast<double>(result.degrees);

  const double precision = 1 / between_variance + count / variance;
  result.experiments = own_logs.size();
  result.center = (prior_center / between_variance + count * mean / variance) / precision;
  result.scale = std::sqrt(variance + 1 / precision);
  const double reach = student_t_quantile((1 + Uncertainty::kCoverage) / 2, result.degrees) * result.scale;
  result.low = std::exp(result.center - reach);
  result.high = std::exp(result.center + reach);
  return result;
}

OwnEvidence own_evidence(const std::vector<OwnStep>& steps, const Interval& published, const std::string& stack,
                         const std::string& leaving_out) {
  OwnEvidence result;
  std::map<std::string, std::vector<double>> by_experiment;
  for (const OwnStep& one : steps) {
    if (one.chip != published.chip || one.kind != published.kind || one.stack != stack || one.id == leaving_out)
      continue;
    if (one.predicted_by != prediction_mark()) {
      ++result.outdated;
      continue;
    }
    by_experiment[one.experiment].push_back(std::log(one.measured_s / one.predicted_s));
    ++result.rows;
  }
  for (const auto& [experiment, logs] : by_experiment) {
    double mean = 0;
    for (const double one : logs) mean += one / static_cast<double>(logs.size());
    result.logs.push_back(mean);
  }
  return result;
}

}  // namespace manyworlds::experiments
