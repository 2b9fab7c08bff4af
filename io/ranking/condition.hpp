// The condition of `--where`: terms "column op value" joined by "and". Sizes and times take suffixes that fit the
// column's unit (memory_peak_bytes < 80GiB); text compares with == and != and may be quoted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

class Condition {
 public:
  /// `table` must outlive the condition. An empty text holds everywhere. Throws InputError.
  Condition(std::string_view text, const Table& table);

  /// A value that is missing (NaN) satisfies nothing, not even !=.
  bool holds(std::size_t row) const;
  bool names(std::string_view column) const;

 private:
  enum class Op { less, less_or_equal, greater, greater_or_equal, equal, not_equal };
  struct Term {
    const Column* column;
    Op op;
    double number;     // of columns of numbers
    std::string text;  // of columns of text
  };
  static Term parse_term(std::string_view text, const Table& table);
  static bool holds(const Term& term, std::size_t row);

  std::vector<Term> terms_;
};

/// The column of that name. Throws InputError with the nearest names; `option` ("--by") begins its message.
const Column& column_called(const std::string& name, const Table& table, const std::string& option);

}  // namespace manyworlds::io
