// Compares the results of two runs: whether they are equal and, if not, where they first differ and in how many places.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/results/results.hpp"

namespace manyworlds::io {

/// In the order of the exit codes of `manyworlds diff`: 0, 1, 2.
enum class Verdict { same, different, cannot_compare };

struct Difference {
  std::string where;  // "experiments/step_time_s", "spec", …
  std::optional<std::size_t> row;
  std::string left, right;
};

struct Comparison {
  Verdict verdict = Verdict::same;
  std::string reason;               // why the runs cannot be compared
  std::optional<Difference> first;  // the first difference, in the order of the file
  std::uint64_t structural = 0;     // number of differences of spec, axes, columns and row counts
  std::uint64_t values = 0;         // number of single values that differ
  std::uint64_t columns = 0;        // number of columns with such values
  std::uint64_t rows = 0;           // number of table rows with such values
};

Comparison compare_results(const Results& left, const Results& right);
/// Never throws because of unreadable files or their content: the verdict is cannot_compare.
Comparison compare_results(const std::filesystem::path& left, const std::filesystem::path& right);

/// Returns a few lines for people.
std::string describe(const Comparison& comparison);

}  // namespace manyworlds::io
