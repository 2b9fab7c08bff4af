// Result columns of the axes, and the row of each combination.
#pragma once

#include <vector>

#include "experiments/axes/axes.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::experiments {

class Columns {
 public:
  /// `base` holds the settings to which the values of axes are assigned when their leaves are compared.
  Columns(const std::vector<Factor>& factors, const Settings& base, const Catalog& catalog);

  const std::vector<AxisColumn>& columns() const { return columns_; }
  /// Returns the values of a combination; `chosen` has the index of the value of each factor.
  std::vector<core::OptionValue> row(const std::vector<std::size_t>& chosen, const Settings& settings) const;

 private:
  struct Source {
    std::size_t factor = 0;
    const Axis* labels = nullptr;  // axis whose label is shown; null: the setting at `path`
    std::string path;
  };
  void add_value(const Target& target, bool everywhere);
  void add_leaves(const Axis& axis, const Settings& base, const Catalog& catalog);

  const std::vector<Factor>& factors_;
  std::vector<AxisColumn> columns_;
  std::vector<Source> sources_;
};

}  // namespace manyworlds::experiments
