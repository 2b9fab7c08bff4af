// Peaks of memory of every rank, which a table of training steps may have beside the times.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// By rank, in the order of Megatron-LM: what the framework had allocated at most, and what its allocator had reserved.
struct RankMemory {
  std::vector<double> allocated_mib, reserved_mib;
  bool empty() const { return allocated_mib.empty() && reserved_mib.empty(); }
};

/// Reads the columns rank_allocated_mib and rank_reserved_mib, each empty or with one number for each rank and '+'
/// between them. Throws UnsupportedRow if there are others.
RankMemory read_rank_memory(const import::CsvRow& row, std::int64_t ranks);

}  // namespace manyworlds::experiments::measured
