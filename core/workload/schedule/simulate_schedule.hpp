// Simulation of a pipeline schedule in which every pass runs as soon as it can, without streams or a network. Closed
// forms and checks of pass orders need it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/stage_map.hpp"

namespace manyworlds::core::workload {

struct SimulatedSchedule {
  Time step_ps = 0;  // from the start of the first pass of any rank to the end of the last pass
  Time longest_rank_ps =
      0;  // longest time of one rank, from the start of its own first pass to the end of its own last pass
  std::vector<std::size_t>
      completed_passes;  // by rank: passes that ran, fewer than its order has if the rank is deadlocked
};

/// Runs every pass as soon as its inputs are available. `duration_of` returns how long a pass of a rank takes; an
/// output arrives on another rank `transfer_ps` later. Two passes with overlaps_next begin and end together. Every pass
/// must belong to a virtual stage of `stage_map`.
SimulatedSchedule simulate_schedule(const StageMap& stage_map, const std::vector<PassOrder>& orders,
                                    const std::function<Time(std::int64_t rank, const PipelinePass&)>& duration_of,
                                    Time transfer_ps);

/// Returns a description of a pass that cannot run and of the pass that it waits for; empty if all passes run.
std::string describe_deadlock(const StageMap& stage_map, const std::vector<PassOrder>& orders);

/// Returns the pass in words: "forward of micro-batch 3, chunk 0".
std::string name_of(const PipelinePass& pass);

}  // namespace manyworlds::core::workload
