// The critical path of a step: a chain of operations over all ranks, each of which began when the one before it ended,
// from the beginning of the step to its end. A step ends earlier only if something on every such chain takes less.
#pragma once

#include <vector>

#include "core/step/run/recording.hpp"

namespace manyworlds::core::step {

/// A part of the path. Of a collective it begins when the last of its members has entered that the rank could wait for:
/// what came before is that member's.
struct CriticalSpan {
  RankId rank;
  std::uint32_t op = 0;
  Time begin = 0, end = 0;
  Time slowed = 0;  // of a kernel: what collectives beside it cost
  bool operator==(const CriticalSpan&) const = default;
};

/// Returns the critical path, ascending; its spans fill the step without a gap, and some may take no time. Where
/// several operations ended at the instant at which one began, the path has the one before it on its stream, else the
/// first that it waits for. `recording` must have all ranks of a synchronised step that ran to its end.
std::vector<CriticalSpan> critical_path(const CompiledStep& compiled, const Recording& recording);

}  // namespace manyworlds::core::step
