// Pipeline schedules as PyTorch's torch.distributed.pipelining writes them, compute actions only; docs/formats.md
// describes them.
#pragma once

#include <string>
#include <string_view>

#include "core/workload/schedule/written_schedule.hpp"

namespace manyworlds::experiments::import {

/// Throws InputError, with `name` and the line, for anything that is not such a schedule: an action that is none, a
/// stage on two ranks or where neither a loop nor a V has it, a pass that is missing, doubled or before what it needs
/// on its rank, and orders that wait for each other for ever, with the two passes.
core::workload::WrittenSchedule parse_schedule(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
