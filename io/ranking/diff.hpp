// Do two runs have the same answer? If not, where do they part first, and in how many places?
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
  std::string reason;               // of cannot_compare
  std::optional<Difference> first;  // in the order of the file
  std::uint64_t structural = 0;     // differences of spec, axes, columns and row counts
  std::uint64_t values = 0;         // single values that differ
  std::uint64_t columns = 0;        // columns with such values
  std::uint64_t rows = 0;           // rows of tables with such values
};

Comparison compare_answers(const Results& left, const Results& right);
/// Never throws for what the files hold or for files that cannot be read: that is cannot_compare.
Comparison compare_answers(const std::filesystem::path& left, const std::filesystem::path& right);

/// For people, a few lines.
std::string describe(const Comparison& comparison);

}  // namespace manyworlds::io
