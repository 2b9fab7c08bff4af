// A pass through a model chunk as segments: kernels that run back to back are merged.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

struct Segment {
  std::variant<KernelOp, CollectiveStart> action;
  std::optional<Join> join;         // before it begins
  std::int32_t finished_parts = 0;  // parts of the chunk that end with this segment (split)
  // A section of a pass is launched as a whole: the host begins with its first segment, and its last segment, which
  // takes no time, ends when the host is done.
  Time launch_ps = 0;         // of the section that begins here; 0: none does
  bool launch_waits = false;  // the host first waits for the kernels before the section
  bool ends_launch = false;   // the section ends here

  const KernelOp* kernel() const { return std::get_if<KernelOp>(&action); }
};

/// Returns the segments of a chunk's pass. Backward passes go through the parts in reverse; `split` ends a segment at
/// the end of each part, so that parameters can arrive and gradients leave part by part.
std::vector<Segment> segments_of(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind, bool split);

}  // namespace manyworlds::core::workload
