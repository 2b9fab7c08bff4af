// Pipeline schedules in the format of PyTorch's torch.distributed.pipelining, compute actions only; docs/formats.md
// describes it.
#pragma once

#include <string>
#include <string_view>

#include "core/workload/schedule/written_schedule.hpp"

namespace manyworlds::experiments::import {

/// Parses a schedule; `name` is the file name in messages. Throws InputError with the line for an invalid action, a
/// stage on two ranks or on a rank that fits neither a loop nor a V, a pass that is missing, repeated or ahead of its
/// dependencies on the same rank, and orders that deadlock, with the two passes.
core::workload::WrittenSchedule parse_schedule(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
