// Measured peaks of memory and measured collectives against what is predicted for them, which takes no farm.
#pragma once

#include <vector>

#include "experiments/measured/collectives.hpp"
#include "experiments/measured/memory.hpp"
#include "farm/validation/validation.hpp"

namespace manyworlds::farm {

/// Families: dense models whose peak is 20 GB or more, dense ones below, experts, FSDP.
Comparison compare(const std::vector<experiments::measured::MemoryRow>& rows);

/// Families are the rows' own: by GPU, inside a node or across nodes, and by size.
Comparison compare(const std::vector<experiments::measured::Collective>& rows);

}  // namespace manyworlds::farm
