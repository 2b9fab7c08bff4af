// The section of a report that says why the best are the best.
#pragma once

#include <vector>

#include "io/report/report_blocks.hpp"

namespace manyworlds::io {

/// Returns, of a sweep that asked for its best, how many were left behind each rung of bounds, and what is proven;
/// nothing for other sweeps, and for one that has not ended.
std::vector<Block> proof_of_best(const Results& results);

}  // namespace manyworlds::io
