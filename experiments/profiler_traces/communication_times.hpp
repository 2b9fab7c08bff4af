// What communicated in traces, as it was recorded: by group, or by library where a trace tells of no groups.
#pragma once

#include <string>
#include <vector>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

/// Returns a line for each group, those that took longest first: how many kernels it had, of what kinds, how long they
/// took on all traces together, waiting for other ranks included, and for how long of that no kernel ran on the same
/// GPU that computes. Groups of one name and size are one line.
std::vector<std::string> communication_lines(const std::vector<RankTrace>& traces);

}  // namespace manyworlds::experiments::profiler
