// How far predictions are from measurements, family by family: errors, the order of layouts, and what picking by
// prediction costs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// A measured row and what was predicted for it.
struct Compared {
  std::string id, family;
  std::string choice;  // rows of one family and choice are what somebody would choose among
  std::string layout;  // what they would choose
  double measured = 0, predicted = 0;
  std::string unit = "s";
  double weight = 1;
  bool apart = false;      // out of the family's figures, which have their own for these
  double closed_form = 0;  // what closed forms say in the place of a simulation; 0: nothing

  /// Of what was measured; above 0 where the prediction is too much.
  double error() const { return predicted / measured - 1; }
};

/// A row that was not compared.
struct NotCompared {
  std::string id, family, reason, detail;
};

struct Comparison {
  std::vector<Compared> rows;        // in the order of the tables
  std::vector<NotCompared> left;     // those that could not be predicted, and those whose simulation failed
  std::vector<std::string> assumed;  // what rows that were compared do not say, by names of columns, once for each row
};

/// Errors of rows by their weights; all 0 where there are none.
struct Errors {
  std::size_t rows = 0;
  double mean = 0, median = 0, most = 0;  // of their magnitudes
  double bias = 0;                        // their mean with its sign
};
Errors errors_of(const std::vector<Compared>& rows);

/// The rows of one layout, as one with their means.
struct Layout {
  double measured = 0, predicted = 0;
};
/// The layouts of each choice of each family.
std::vector<std::vector<Layout>> choices_of(const std::vector<Compared>& rows);

/// Layouts against each other. Two rows make a pair when they are of one family and choice (the same model, GPUs,
/// number of GPUs, global batch and precision), their layouts differ, and one measured more than `apart` longer than
/// the other. Rows of one layout, such as two releases of a software, count as one with their mean.
struct Order {
  std::size_t pairs = 0, right = 0;
  std::size_t choices = 0;  // with several layouts
  double regret_mean = 0,
         regret_most = 0;  // measured time of the layout predicted best, over the best measured, less 1
  double share() const { return pairs == 0 ? 0 : static_cast<double>(right) / static_cast<double>(pairs); }
};
inline constexpr double kApart = 0.05;
Order order_of(const std::vector<Compared>& rows, double apart = kApart);

struct FamilyFigures {
  std::string family;
  Errors errors;
  Order order;
  Errors apart;  // of the rows that are kept apart
};
/// One for each family, in the order in which they first appear.
std::vector<FamilyFigures> figures_by_family(const std::vector<Compared>& rows);

}  // namespace manyworlds::farm
