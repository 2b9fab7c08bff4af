// The accuracy of predictions, family by family: errors, the order of layouts, and the cost of choosing by prediction.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// A measured row and its prediction.
struct ComparedRow {
  std::string id, family;
  std::string comparison_group;  // rows of one family and group are alternatives of each other
  std::string layout;            // the alternative
  double measured = 0, predicted = 0;
  std::string unit = "s";
  double weight = 1;
  bool excluded_from_family = false;  // excluded from the family's statistics, which list such rows separately
  double closed_form = 0;             // prediction of the closed form instead of the simulation; 0: none

  /// Returns the relative error; positive if the prediction is too large.
  double error() const { return predicted / measured - 1; }
};

/// A row that was not compared.
struct OmittedRow {
  std::string id, family, reason, detail;
};

struct Comparison {
  std::vector<ComparedRow> rows;     // in the order of the tables
  std::vector<OmittedRow> omitted;   // rows that cannot be predicted, or whose simulation failed
  std::vector<std::string> assumed;  // names of columns that compared rows do not give, once per row
};

/// Weighted errors of rows; all 0 if there are no rows.
struct Errors {
  std::size_t rows = 0;
  double mean = 0, median = 0, max = 0;  // statistics of the absolute errors
  double bias = 0;                       // mean of signed errors
};
Errors errors_of(const std::vector<ComparedRow>& rows);

/// All rows of one layout, as their mean.
struct MeanLayout {
  double measured = 0, predicted = 0;
};
/// Returns the layouts of each comparison group of each family.
std::vector<std::vector<MeanLayout>> groups_of(const std::vector<ComparedRow>& rows);

/// How well predictions rank layouts. Two layouts make a pair if they belong to one family and comparison group (the
/// same model, GPUs, number of GPUs, global batch and precision) and one measured more than a given share longer than
/// the other. Rows of one layout, such as two releases of a software, count once with their mean.
struct RankingAccuracy {
  std::size_t pairs = 0, correct = 0;
  std::size_t groups = 0;  // groups with several layouts
  double mean_regret = 0,
         max_regret = 0;  // regret: best-predicted over best measured time, minus 1
  double share() const { return pairs == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(pairs); }
};
inline constexpr double kMinPairDifference = 0.05;
RankingAccuracy ranking_accuracy_of(const std::vector<ComparedRow>& rows, double min_difference = kMinPairDifference);

struct FamilyAccuracy {
  std::string family;
  Errors errors;
  RankingAccuracy ranking;
  Errors excluded_from_family;  // errors of the excluded rows
};
/// Returns one entry per family, in order of first appearance.
std::vector<FamilyAccuracy> accuracy_by_family(const std::vector<ComparedRow>& rows);

}  // namespace manyworlds::farm
