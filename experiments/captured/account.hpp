// What users are told of records that became programs: what was a step, what was assumed, what has no time.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/captured/kernel_table.hpp"
#include "experiments/captured/read_captured.hpp"
#include "experiments/captured/step_program.hpp"

namespace manyworlds::experiments::captured {

/// Adds notes and the account to `to`. `differing` is how many operations of a rank have other sizes in its own record.
void tell(const std::vector<RankRecord>& records, const std::vector<StepRange>& steps, const Tally& tally,
          const KernelTable& table, const Words& words, const ReadOptions& options, std::int64_t differing,
          programs::Imported& to);

}  // namespace manyworlds::experiments::captured
