// Result columns on what the times of kernels are based on.
#pragma once

#include <vector>

#include "farm/results/result_row.hpp"

namespace manyworlds::farm {

/// Adds what the time of all kernels is based on: measurements, or the model.
void add_time_basis(std::vector<io::Column>& to, const Rows& rows);
/// Adds the sources of kernel times for experiments with a table of measured times; nothing if there are none.
void add_measured_kernels(std::vector<io::Column>& to, const Rows& rows);

}  // namespace manyworlds::farm
