// What calibration found for one part of the model: kernels, collectives or steps.
#pragma once

#include <string>
#include <vector>

#include "experiments/analysis/selected_fit.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

struct CalibratedConstant {
  std::string key;  // of the GPU's options
  double before = 0, after = 0;
  double relative_error = 0;  // standard error as a share of the value
  bool at_limit = false;      // of its range: the rows want more than there is
};

/// A measured row: predicted with the catalog's constants, with the fitted ones, and with those fitted without it.
struct CalibratedRow {
  std::string id, kind;
  double measured = 0, before = 0, after = 0, left_out = 0;
  double weight = 1;  // 0: not fitted to
};

struct CalibratedPart {
  std::string title;
  std::vector<CalibratedRow> rows;
  std::vector<CalibratedConstant> fitted;
  std::vector<std::string> kept;  // keys that the rows do not determine, whose values stay
  bool taken = true;              // false: rows left out are predicted no better, so that all values stay
  std::vector<OmittedRow> omitted;

  /// Returns the number of rows that constants are fitted to.
  std::size_t fitted_rows() const;
  /// Returns the constants that change; none if they are not taken.
  std::vector<CalibratedConstant> changes() const { return taken ? fitted : std::vector<CalibratedConstant>(); }
};

/// Which of the three predictions of a row.
enum class Prediction : std::uint8_t { before, after, left_out };

/// Returns the mean absolute errors of rows of a kind (empty: of all).
Errors errors_of(const CalibratedPart& part, const std::string& kind, Prediction prediction);

/// Each kind counts by the square root of its rows, so that a long table does not outweigh the others.
std::vector<double> weights_by_kind(const std::vector<CalibratedRow>& rows);

/// Returns a value of four digits, as it is written to a catalog.
double rounded(double value);

/// Returns the fitted constants, rounded, and the keys of the others, with `part.taken` as rows left out decide.
/// `left_out` and the rows' `before` must be set.
void take_fit(CalibratedPart& part, const experiments::fitting::SelectionProblem& problem,
              const experiments::fitting::SelectedFit& fit);

}  // namespace manyworlds::farm
