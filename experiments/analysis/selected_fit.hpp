// Fits few of many constants to measured times. A constant is fitted only where the rows determine it; the others stay
// as they are. The errors of rows that a fit has not seen come from leaving rows out, choice of constants included.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace manyworlds::experiments::fitting {

/// A constant above 0 that may be fitted.
struct Candidate {
  std::string key;
  double start = 0, minimum = 0, maximum = 0;
};

struct SelectionProblem {
  std::vector<Candidate> candidates;  // of two that explain equally much, the first is fitted
  std::vector<double> measured;       // above 0
  std::vector<double> weights;        // of rows; 0: not fitted to
  /// Returns the predicted times of all rows, above 0, with these values of the candidates.
  std::function<std::vector<double>(const std::vector<double>& values)> predict;
};

struct SelectedFit {
  std::vector<double> values;           // of all candidates; of those that were not chosen, their starts
  std::vector<std::size_t> chosen;      // indices of candidates, in the order in which they were chosen
  std::vector<double> relative_errors;  // standard errors of the chosen ones, as shares of their values
};

/// Adds constants one by one, each time the one that explains most, as long as n ln(cost) falls by more than ln(n) +
/// ln(c) with n rows that depend on c candidates (the Bayesian information criterion, and the choice of one of c),
/// there are three rows for each, the standard error of each stays below 30 %, and none moves by more than a factor of
/// eight. The cost is Huber's, of the logarithm of predicted over measured time. The same problem gives the same values
/// to the bit.
SelectedFit select_and_fit(const SelectionProblem& problem);

/// Up to so many rows each is left out by itself; of more, row i is left out with all others of the same i mod kFolds.
inline constexpr std::size_t kLeaveOneOutRows = 40, kFolds = 10;

/// Returns for each row its predicted time with constants chosen and fitted without it. A row of weight 0 is predicted
/// with the constants of all.
std::vector<double> predict_left_out(const SelectionProblem& problem);

}  // namespace manyworlds::experiments::fitting
