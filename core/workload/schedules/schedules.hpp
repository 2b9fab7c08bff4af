// One function per schedule; each lives in the file of its name, and registry.cpp lists them.
#pragma once

#include "core/workload/schedule.hpp"

namespace manyworlds::core::workload::schedules {

Schedule gpipe(const Strategy& strategy, std::int64_t stage);
Schedule one_f_one_b(const Strategy& strategy, std::int64_t stage);
Schedule interleaved(const Strategy& strategy, std::int64_t stage);

}  // namespace manyworlds::core::workload::schedules
