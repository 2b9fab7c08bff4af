// A pipeline schedule that somebody wrote down: the orders of all ranks, complete and able to run.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sharing/key.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

struct WrittenSchedule {
  Folding folding = Folding::loop;
  std::int64_t ranks = 1;
  std::int64_t chunks = 1;  // of each rank
  std::int64_t micro_batches = 1;
  std::vector<Schedule> orders;  // by rank
};

/// The key of its orders.
sharing::Key key_of(const WrittenSchedule& schedule);

}  // namespace manyworlds::core::workload
