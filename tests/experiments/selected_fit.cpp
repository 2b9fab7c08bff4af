// Fits of few constants: what rows determine comes back, what they do not stays, and rows left out are predicted
// without.
#include "experiments/analysis/selected_fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace manyworlds::experiments::fitting;

namespace {

/// Times of bytes at a share of a rate after a launch, of which `noise` per cent are added and taken away in turn; the
/// third candidate means nothing, the fourth is the share once more.
SelectionProblem transfers(double launch, double share, double noise, std::size_t rows = 24) {
  SelectionProblem problem;
  problem.candidates = {
      {"launch", 3, 0, 1'000}, {"share", 0.8, 0.001, 1}, {"idle", 5, 0, 1'000}, {"twin", 1, 0.001, 1}};
  std::vector<double> bytes;
  for (std::size_t i = 0; i < rows; ++i) {
    bytes.push_back(1'000 * std::pow(1.5, static_cast<double>(i)));
    problem.weights.push_back(1);
    problem.measured.push_back((launch + bytes.back() / (1'000 * share)) * (1 + noise * (i % 2 == 0 ? 1 : -1) / 100));
  }
  problem.predict = [bytes](const std::vector<double>& values) {
    std::vector<double> times;
    for (const double each : bytes) times.push_back(values[0] + each / (1'000 * values[1] * values[3]));
    return times;
  };
  return problem;
}

double mean_error(const SelectionProblem& problem, const std::vector<double>& predicted) {
  double sum = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) sum += std::abs(predicted[i] / problem.measured[i] - 1);
  return sum / static_cast<double>(predicted.size());
}

}  // namespace

TEST_CASE("two constants come back from times that follow from them, and two others stay") {
  const SelectionProblem problem = transfers(7, 0.5, 0);
  const SelectedFit fit = select_and_fit(problem);
  REQUIRE(fit.chosen.size() == 2);
  CHECK(fit.values[0] == Approx(7).epsilon(1e-4));
  CHECK(fit.values[1] == Approx(0.5).epsilon(1e-4));
  CHECK((fit.values[2] == 5 && fit.values[3] == 1));
  for (const double error : fit.relative_errors) CHECK(error < 0.01);
}

TEST_CASE("with noise the constants come back within their standard errors") {
  const SelectedFit fit = select_and_fit(transfers(7, 0.5, 4));
  REQUIRE(fit.chosen.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const double truth = fit.chosen[i] == 0 ? 7 : 0.5;
    CHECK(std::abs(std::log(fit.values[fit.chosen[i]] / truth)) < 3 * fit.relative_errors[i]);
    CHECK(fit.relative_errors[i] < 0.1);
  }
}

TEST_CASE("rows that are predicted right already move nothing, and two rows determine nothing") {
  CHECK(select_and_fit(transfers(3, 0.8, 0)).chosen.empty());
  CHECK(select_and_fit(transfers(3, 0.8, 2)).chosen.empty());
  CHECK(select_and_fit(transfers(7, 0.5, 0, 2)).chosen.empty());
}

TEST_CASE("one row far off moves a fit of chosen constants little") {
  SelectionProblem problem = transfers(7, 0.5, 0);
  problem.measured[20] *= 5;
  const SelectedFit fit = select_and_fit(problem);
  CHECK(fit.values[0] == Approx(7).epsilon(0.02));
  CHECK(fit.values[1] == Approx(0.5).epsilon(0.02));
}

TEST_CASE("a share does not exceed 1, whatever the rows say") {
  const SelectedFit fit = select_and_fit(transfers(3, 1.4, 0));
  CHECK(fit.values[1] == 1);
}

TEST_CASE("rows left out are predicted by what the others say") {
  const SelectionProblem exact = transfers(7, 0.5, 0);
  CHECK(mean_error(exact, predict_left_out(exact)) < 1e-3);
  // A row that nothing explains is no better known for being in the table.
  SelectionProblem problem = transfers(7, 0.5, 0);
  problem.measured[4] *= 3;
  const std::vector<double> predicted = predict_left_out(problem);
  CHECK(predicted[4] == Approx(exact.measured[4]).epsilon(0.02));
  // Of many rows, folds are left out together.
  const SelectionProblem many = transfers(7, 0.5, 2, 55);
  CHECK(mean_error(many, predict_left_out(many)) == Approx(0.02).epsilon(0.2));
}
