// The condition of `--where`: terms "column op value" joined by "and". Sizes and times take suffixes of the column's
// unit (memory_peak_bytes < 80GiB); text is compared with == and != and may be quoted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

class Condition {
 public:
  /// Parses `text`; `table` must outlive the condition. An empty text matches every row. Throws InputError.
  Condition(std::string_view text, const Table& table);

  /// Returns whether a row satisfies every term. A missing value (NaN) satisfies no term, not even one with !=.
  bool matches(std::size_t row) const;
  bool mentions(std::string_view column) const;

 private:
  enum class Op { less, less_or_equal, greater, greater_or_equal, equal, not_equal };
  struct Term {
    const Column* column;
    Op op;
    double number;     // for numeric columns
    std::string text;  // for text columns
  };
  static Term parse_term(std::string_view text, const Table& table);
  static bool matches(const Term& term, std::size_t row);

  std::vector<Term> terms_;
};

/// Returns the column called `name`. Throws InputError with the nearest names; the message begins with `option`
/// ("--by").
const Column& require_column(const std::string& name, const Table& table, const std::string& option);

}  // namespace manyworlds::io
