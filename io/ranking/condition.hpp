// The condition of `--where`: an expression (experiments/tree/expression.hpp) over the columns of results. Sizes and
// times take suffixes of the column's unit (memory_peak_bytes < 80GiB).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/tree/expression.hpp"
#include "io/results/table.hpp"

namespace manyworlds::io {

class Condition {
 public:
  /// Parses `text`; `table` must outlive the condition. An empty text matches every row. Throws InputError.
  Condition(std::string_view text, const Table& table);

  /// Returns whether a row satisfies the condition. A row that lacks a value (NaN) that the condition names does not.
  bool matches(std::size_t row) const;
  bool mentions(std::string_view column) const;

 private:
  std::optional<experiments::Expression> expression_;
  std::vector<const Column*> columns_;  // of the names of the expression
};

/// Returns the column called `name`. Throws InputError with the nearest names; the message begins with `option`
/// ("--by").
const Column& require_column(const std::string& name, const Table& table, const std::string& option);

}  // namespace manyworlds::io
