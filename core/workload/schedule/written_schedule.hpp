// A pipeline schedule from a file: the orders of all ranks, which are complete and free of deadlocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sharing/key.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

struct WrittenSchedule {
  StagePlacement stage_placement = StagePlacement::loop;
  std::int64_t ranks = 1;
  std::int64_t chunks = 1;  // per rank
  std::int64_t micro_batches = 1;
  std::vector<PassOrder> orders;  // by rank
};

/// Returns the key of the schedule: its placement, chunks and orders.
sharing::Key key_of(const WrittenSchedule& schedule);

}  // namespace manyworlds::core::workload
