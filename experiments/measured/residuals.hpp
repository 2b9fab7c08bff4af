// Errors of predicted step times by family, each predicted with constants fitted to the other families: prediction
// intervals are computed from them. README.md here describes how residuals.csv is made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Residuals::kind of collectives over nodes; all others are of steps.
inline constexpr std::string_view kNetworkKind = "network";

/// Errors of the rows of one family, one chip and one kind of layout.
struct Residuals {
  std::string gpu;   // chip_of() the GPU
  std::string kind;  // see layout_kind(); or kNetworkKind
  std::string family;
  std::int64_t rows = 0, pairs = 0;  // numbers of measurements, which the values below summarise
  /// Measured over predicted time, minus 1: at most kMaxValues values of equal weight, ascending.
  std::vector<double> steps;
  /// Pairs of layouts of one comparison group, or of collectives of one family: the factor by which the ratio of their
  /// times was wrong in either direction, minus 1.
  std::vector<double> pair_errors;
};
inline constexpr std::size_t kMaxValues = 20;

/// Returns at most kMaxValues values of equal weight with the distribution of `values_and_weights`: the values
/// themselves if they are few and weigh the same, otherwise their quantiles.
std::vector<double> quantile_sample(std::vector<std::pair<double, double>> values_and_weights);

/// Returns a table with the columns gpu, kind, family, rows, steps_percent, pairs and pairs_percent.
std::string residuals_table(const std::vector<Residuals>& residuals);
/// Throws InputError with file and line.
std::vector<Residuals> read_residuals(const import::CsvTable& table);

}  // namespace manyworlds::experiments::measured
