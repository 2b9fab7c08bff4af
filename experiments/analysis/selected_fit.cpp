#include "experiments/analysis/selected_fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::experiments::fitting {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;
using Indices = std::vector<std::size_t>;

constexpr int kMaxRounds = 30;
constexpr double kStep = 0.01;            // of a constant's logarithm, for finite differences
constexpr double kHuberThreshold = 0.05;  // residual beyond which a row counts less
constexpr double kNoise = 1e-3;           // of a measurement's logarithm: a cost below its own means nothing
constexpr double kMaxMove = 0.4;          // in the logarithm, per round
constexpr double kRidge = 1e-9;           // relative; only keeps a singular system solvable
constexpr double kMaxRelativeError = 0.3;
constexpr double kNearlyEqual = 0.98;
constexpr double kMaxFactor = 8;  // between a constant and its start: beyond, it stands for something else
constexpr std::size_t kRowsPerConstant = 3, kTries = 3;

class Selection {
 public:
  explicit Selection(const SelectionProblem& problem) : problem_(problem) {
    for (const Candidate& one : problem.candidates) {
      MANYWORLDS_CHECK(one.start > 0 && one.maximum > 0, "{} starts at {}", one.key, one.start);
      values_.push_back(one.start);
    }
    rows_ = static_cast<std::size_t>(
        std::count_if(problem.weights.begin(), problem.weights.end(), [](double weight) { return weight > 0; }));
    cost_ = cost(values_);
  }

  SelectedFit run() {
    while (add_constant()) {
    }
    return {values_, chosen_, standard_errors(chosen_, values_)};
  }

 private:
  Vector residuals(const std::vector<double>& values) const {
    const std::vector<double> predicted = problem_.predict(values);
    Vector result(static_cast<Eigen::Index>(predicted.size()));
    for (std::size_t i = 0; i < predicted.size(); ++i)
      result[static_cast<Eigen::Index>(i)] = std::log(predicted[i] / problem_.measured[i]);
    return result;
  }

  double cost(const std::vector<double>& values) const {
    const Vector at = residuals(values);
    double sum = 0, weights = 0;
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      const double size = std::abs(at[i]), weight = problem_.weights[static_cast<std::size_t>(i)];
      sum += weight * (size < kHuberThreshold ? size * size / 2 : kHuberThreshold * (size - kHuberThreshold / 2));
      weights += weight;
    }
    return weights > 0 ? sum / weights + kNoise * kNoise / 2 : 0;
  }

  /// The slope of each residual by the logarithm of each of these constants, towards the inside of its range.
  Matrix slopes(const Indices& constants, const std::vector<double>& values, const Vector& at) const {
    Matrix result(at.size(), static_cast<Eigen::Index>(constants.size()));
    for (std::size_t j = 0; j < constants.size(); ++j) {
      std::vector<double> moved = values;
      double& value = moved[constants[j]];
      const double step = value * std::exp(kStep) > problem_.candidates[constants[j]].maximum ? -kStep : kStep;
      value *= std::exp(step);
      result.col(static_cast<Eigen::Index>(j)) = (residuals(moved) - at) / step;
    }
    return result;
  }

  /// Weights of rows with Huber's.
  Vector weights_at(const Vector& at) const {
    Vector weights(at.size());
    for (Eigen::Index i = 0; i < at.size(); ++i)
      weights[i] = problem_.weights[static_cast<std::size_t>(i)] *
                   (std::abs(at[i]) > kHuberThreshold ? kHuberThreshold / std::abs(at[i]) : 1);
    return weights;
  }

  static Matrix normal_matrix(const Matrix& slopes, const Vector& weights) {
    Matrix normal = Matrix::Zero(slopes.cols(), slopes.cols());
    for (Eigen::Index i = 0; i < slopes.rows(); ++i) {
      const Vector slope = slopes.row(i);
      normal += weights[i] * slope * slope.transpose();
    }
    normal.diagonal() *= 1 + kRidge;
    return normal;
  }

  /// The gradient of the weighted squares.
  static Vector gradient(const Matrix& slopes, const Vector& weights, const Vector& at) {
    Vector result = Vector::Zero(slopes.cols());
    for (Eigen::Index i = 0; i < slopes.rows(); ++i) result += weights[i] * at[i] * slopes.row(i).transpose();
    return result;
  }

  /// Fits these constants from `values`, by Gauss and Newton's method with halved steps: the cost never rises.
  std::vector<double> fitted(const Indices& constants, std::vector<double> values) const {
    double here = cost(values);
    for (int round = 0; round < kMaxRounds; ++round) {
      const Vector at = residuals(values), weights = weights_at(at);
      const Matrix slope = slopes(constants, values, at);
      const Vector step = normal_matrix(slope, weights).ldlt().solve(-gradient(slope, weights, at));
      if (!step.allFinite()) return values;
      double share = 1;
      std::vector<double> next = moved(constants, values, step, share);
      double there = cost(next);
      while (there >= here && share > 1e-3) {
        share /= 2;
        next = moved(constants, values, step, share);
        there = cost(next);
      }
      if (there >= here) return values;
      const bool last = here - there < 1e-9 * here;
      values = std::move(next);
      here = there;
      if (last) return values;
    }
    return values;
  }

  std::vector<double> moved(const Indices& constants, std::vector<double> values, const Vector& step,
                            double share) const {
    for (std::size_t j = 0; j < constants.size(); ++j) {
      const Candidate& one = problem_.candidates[constants[j]];
      const double move = std::clamp(share * step[static_cast<Eigen::Index>(j)], -kMaxMove, kMaxMove);
      values[constants[j]] =
          std::clamp(values[constants[j]] * std::exp(move), std::max(one.minimum, 1e-12), one.maximum);
    }
    return values;
  }

  /// Standard errors of the logarithms, from the spread of the residuals.
  std::vector<double> standard_errors(const Indices& constants, const std::vector<double>& values) const {
    if (constants.empty()) return {};
    const Vector at = residuals(values), weights = weights_at(at);
    const Matrix slope = slopes(constants, values, at);
    // Weights are relative: the variance of a row of weight 1 is estimated from the residuals.
    const double freedom = static_cast<double>(std::max<std::size_t>(1, rows_ - std::min(rows_, constants.size())));
    const double variance = at.cwiseAbs2().dot(weights) / freedom + kNoise * kNoise * weights.sum() / freedom;
    const auto n = static_cast<Eigen::Index>(constants.size());
    const Eigen::LDLT<Matrix> normal = normal_matrix(slope, weights).ldlt();
    std::vector<double> errors;
    for (Eigen::Index j = 0; j < n; ++j) {
      const Vector column = normal.solve(Vector::Unit(n, j));
      const double squared = column[j] * variance;
      errors.push_back(std::isfinite(squared) && squared >= 0 ? std::sqrt(squared) : 1e9);
    }
    return errors;
  }

  /// Returns the constants that are not chosen and that rows depend on, by how much one linear step with them would
  /// lower the squares.
  Indices by_gain() const {
    Indices all(problem_.candidates.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const Vector at = residuals(values_), weights = weights_at(at);
    const Matrix slope = slopes(all, values_, at);
    std::vector<std::pair<double, std::size_t>> gains;
    for (const std::size_t candidate : all) {
      if (std::find(chosen_.begin(), chosen_.end(), candidate) != chosen_.end()) continue;
      Indices tried = chosen_;
      tried.push_back(candidate);
      Matrix part(at.size(), static_cast<Eigen::Index>(tried.size()));
      for (std::size_t j = 0; j < tried.size(); ++j)
        part.col(static_cast<Eigen::Index>(j)) = slope.col(static_cast<Eigen::Index>(tried[j]));
      if (part.col(part.cols() - 1).cwiseAbs().dot(weights) <= 0) continue;
      const Vector right = gradient(part, weights, at);
      const double gain = right.dot(normal_matrix(part, weights).ldlt().solve(right));
      if (std::isfinite(gain) && gain > 0) gains.emplace_back(gain, candidate);
    }
    return in_order_of(std::move(gains));
  }

  /// Returns candidates from the largest gain; of nearly equal ones the first in the list comes first.
  static Indices in_order_of(std::vector<std::pair<double, std::size_t>> gains) {
    Indices result;
    while (!gains.empty()) {
      const double largest = std::max_element(gains.begin(), gains.end())->first;
      const auto next = std::find_if(gains.begin(), gains.end(),
                                     [&](const auto& each) { return each.first >= kNearlyEqual * largest; });
      result.push_back(next->second);
      gains.erase(next);
    }
    return result;
  }

  bool strays(const Indices& constants, const std::vector<double>& values) const {
    return std::any_of(constants.begin(), constants.end(), [&](std::size_t i) {
      const double factor = values[i] / problem_.candidates[i].start;
      return std::max(factor, 1 / factor) > kMaxFactor;
    });
  }

  bool add_constant() {
    if (rows_ < kRowsPerConstant * (chosen_.size() + 1)) return false;
    const Indices candidates = by_gain();
    const double n = static_cast<double>(rows_);
    const double needed = std::log(n) + std::log(static_cast<double>(chosen_.size() + candidates.size()));
    for (std::size_t i = 0; i < std::min(kTries, candidates.size()); ++i) {
      Indices tried = chosen_;
      tried.push_back(candidates[i]);
      const std::vector<double> values = fitted(tried, values_);
      const double there = cost(values);
      if (n * std::log(cost_ / there) <= needed || strays(tried, values)) continue;
      const std::vector<double> errors = standard_errors(tried, values);
      if (*std::max_element(errors.begin(), errors.end()) > kMaxRelativeError) continue;
      chosen_ = std::move(tried), values_ = values, cost_ = there;
      return true;
    }
    return false;
  }

  const SelectionProblem& problem_;
  std::vector<double> values_;
  Indices chosen_;
  std::size_t rows_ = 0;
  double cost_ = 0;
};

}  // namespace

SelectedFit select_and_fit(const SelectionProblem& problem) {
  return Selection(problem).run();
}

std::vector<double> predict_left_out(const SelectionProblem& problem) {
  Indices fitted_rows;
  for (std::size_t i = 0; i < problem.weights.size(); ++i)
    if (problem.weights[i] > 0) fitted_rows.push_back(i);
  std::vector<double> result = problem.predict(select_and_fit(problem).values);
  const std::size_t folds = fitted_rows.size() <= kLeaveOneOutRows ? fitted_rows.size() : kFolds;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    SelectionProblem rest = problem;
    for (std::size_t i = fold; i < fitted_rows.size(); i += folds) rest.weights[fitted_rows[i]] = 0;
    const std::vector<double> predicted = problem.predict(select_and_fit(rest).values);
    for (std::size_t i = fold; i < fitted_rows.size(); i += folds) result[fitted_rows[i]] = predicted[fitted_rows[i]];
  }
  return result;
}

}  // namespace manyworlds::experiments::fitting
