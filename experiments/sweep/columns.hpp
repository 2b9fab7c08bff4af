// The columns that axes make in the answer, and the row that one combination gives.
#pragma once

#include <vector>

#include "experiments/sweep/axes.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments {

class Columns {
 public:
  /// `base` is what the axes' values are assigned to when their leaves are compared.
  Columns(const std::vector<Factor>& factors, const Settings& base, const Catalog& catalog);

  const std::vector<AxisColumn>& columns() const { return columns_; }
  /// The values of a combination: `chosen` is the index of the value taken of each factor.
  std::vector<core::OptionValue> row(const std::vector<std::size_t>& chosen, const Settings& settings) const;

 private:
  struct Source {
    std::size_t factor = 0;
    const Axis* labels = nullptr;  // a label of this axis' value; otherwise the setting at `path`
    std::string path;
  };
  void add_value(const Target& target, bool everywhere);
  void add_leaves(const Axis& axis, const Settings& base, const Catalog& catalog);

  const std::vector<Factor>& factors_;
  std::vector<AxisColumn> columns_;
  std::vector<Source> sources_;
};

}  // namespace manyworlds::experiments
