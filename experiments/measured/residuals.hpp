// How far off predictions of measured steps were, family by family, each predicted with constants fitted to the other
// families: what the intervals of predictions are made of. README.md tells how residuals.csv is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Of the rows of one family on one chip that are layouts of one kind.
struct Residuals {
  std::string gpu;   // chip_of() theirs
  std::string kind;  // see layout_kind()
  std::string family;
  std::int64_t rows = 0, pairs = 0;  // that were measured; the values below stand for so many
  /// Measured over predicted time, less 1: at most kMostValues values of equal weight, ascending.
  std::vector<double> steps;
  /// Two layouts of one choice: by what factor the ratio of their times was off, in whichever direction, less 1.
  std::vector<double> pairs_off;
};
inline constexpr std::size_t kMostValues = 20;

/// At most kMostValues values of equal weight that are spread as `values_and_weights`: those themselves where they are
/// few and weigh the same, otherwise their quantiles.
std::vector<double> spread(std::vector<std::pair<double, double>> values_and_weights);

/// As a table with the columns gpu, kind, family, rows, steps_percent, pairs and pairs_percent.
std::string residuals_table(const std::vector<Residuals>& residuals);
/// Throws InputError, with file and line.
std::vector<Residuals> read_residuals(const import::CsvTable& table);

}  // namespace manyworlds::experiments::measured
