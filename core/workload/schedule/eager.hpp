// The orders of a pipeline's passes, run as soon as they can be, without streams or network: what closed forms and
// checks of orders need.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/sections.hpp"

namespace manyworlds::core::workload {

struct EagerRun {
  Time step_ps = 0;               // from the first pass of any rank to the end of the last
  Time longest_ps = 0;            // of a rank, from its own first pass to the end of its own last
  std::vector<std::size_t> done;  // passes that ran, by rank: fewer than its order has where it cannot go on
};

/// `lasts` tells how long a pass of a rank takes; what goes to another rank takes `transfer_ps` more. Two passes that
/// run together begin and end as one. Every pass must be one of `sections`.
EagerRun run_eagerly(const Sections& sections, const std::vector<Schedule>& orders,
                     const std::function<Time(std::int64_t rank, const Slot&)>& lasts, Time transfer_ps);

/// Names a pass that cannot run and the one that it waits for; empty if all run.
std::string deadlock_of(const Sections& sections, const std::vector<Schedule>& orders);

/// As people read it: "forward of micro-batch 3, chunk 0".
std::string name_of(const Slot& slot);

}  // namespace manyworlds::core::workload
