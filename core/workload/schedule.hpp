// Pipeline schedules: in which order a pipeline rank runs the forward and backward passes of its micro-batches.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/workload/strategy.hpp"

namespace manyworlds::core::workload {

/// One pass of one micro-batch through one model chunk of a rank.
struct Slot {
  bool forward = true;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;  // of this rank: chunk c of rank r is the model's part c * pp + r
  auto operator<=>(const Slot&) const = default;
};
using Schedule = std::vector<Slot>;

struct ScheduleEntry {
  ScheduleKind kind;
  std::string_view name;
  std::string_view description;
  Schedule (*order)(const Strategy& strategy, std::int64_t stage);
};

/// Every schedule there is, in the order of ScheduleKind.
std::span<const ScheduleEntry> registered_schedules();

/// The order of pipeline rank `stage` under the strategy's schedule.
Schedule schedule(const Strategy& strategy, std::int64_t stage);

}  // namespace manyworlds::core::workload
