// Pipelines that schedules run on, for the tests of schedules and programs.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

inline const ScheduleType& type_of(std::string_view name) {
  return schedule_type(schedule_by_name(name));
}

/// Every schedule on every pipeline of a grid that it can run on.
inline std::vector<std::pair<const ScheduleType*, Pipeline>> every_pipeline() {
  std::vector<std::pair<const ScheduleType*, Pipeline>> all;
  for (const ScheduleType& type : schedules())
    for (const std::int64_t ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12})
      for (const std::int64_t micro_batches : {1, 2, 3, 4, 7, 8, 12, 16, 24, 40})
        for (const std::int64_t chunks : {1, 2, 3, 5}) {
          const Pipeline pipeline{ranks, micro_batches, chunks};
          if (schedule_infeasible_reason(type, pipeline).empty()) all.emplace_back(&type, pipeline);
        }
  return all;
}

}  // namespace manyworlds::core::workload
