// Merging of the kernels between two communications into segments.
#include "core/workload/build/segments.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/compute/host.hpp"

namespace manyworlds::core::workload {
namespace {

class SegmentBuilder {
 public:
  SegmentBuilder(const StageWork& work, const compute::Gpu& gpu) : work_(work), gpu_(gpu) {}

  /// Adds a pass, and the time by which the host's launches lengthen it.
  void add(const PhaseList& pass) {
    compute::HostWork host;
    Time busy_ps = 0;
    for (const Phase& phase : pass)
      for (const WorkItem& work : phase.ops) {
        const Time cost_ps = add(work, phase.category);
        if (!work_.launched_by_host(work)) continue;
        host.kernels += work.kind == WorkItem::Kind::kernel ? work.launches : 0;
        host.collectives += work.kind == WorkItem::Kind::start ? 1 : 0;
        busy_ps += cost_ps;
      }
    if (const Time wait_ps = compute::host_wait(host, busy_ps, gpu_); wait_ps > 0) compute(StepPart::host, wait_ps);
  }

  /// Ends the part: the next kernel begins a new segment.
  void finish_part() {
    if (segments_.empty()) compute(StepPart::backward, 0);  // an embedding has no separate weight gradients
    segments_.back().finished_parts += 1;
    open_ = false;
  }

  std::vector<Segment> take() {
    if (join_pending_)
      compute(StepPart::forward, 0);  // a chunk without layers may end in a collective, which must be waited for
    return std::move(segments_);
  }

 private:
  /// Returns the time of a kernel; 0 for communication.
  Time add(const WorkItem& work, StepPart category) {
    if (work.kind == WorkItem::Kind::join) {
      require_join(work.join_filter);
      open_ = false;
    } else if (work.kind == WorkItem::Kind::start) {
      Segment segment;
      segment.kind = Segment::Kind::start;
      segment.waits_for_collectives = join_pending_;
      segment.join_filter = join_filter_;
      segment.collective = work.collective;
      segment.bytes = work.bytes;
      segment.split = work.split;
      segment.role = work.role;
      segment.name = work.name;
      segments_.push_back(segment);
      open_ = join_pending_ = false;
    } else {
      compute(category, work.kernel_cost.ps);
      return work.kernel_cost.ps;
    }
    return 0;
  }

  /// Merges a join into the pending one; one of the two must wait for everything that the other waits for.
  void require_join(const JoinFilter& join_filter) {
    const bool replaces = !join_pending_ || !join_filter.role;
    MANYWORLDS_CHECK(replaces || !join_filter_.role || join_filter_.role == join_filter.role, "a join for two roles");
    const std::int64_t except_last =
        join_pending_ ? std::min(join_filter.except_last, join_filter_.except_last) : join_filter.except_last;
    if (replaces) join_filter_ = join_filter;
    join_filter_.except_last = except_last;
    join_pending_ = true;
  }

  void compute(StepPart category, Time duration_ps) {
    if (!open_ || segments_.back().category != category) {
      Segment segment;
      segment.waits_for_collectives = join_pending_;
      segment.join_filter = join_filter_;
      segment.category = category;
      segments_.push_back(segment);
      open_ = true;
      join_pending_ = false;
    }
    segments_.back().duration_ps += duration_ps;
  }

  const StageWork& work_;
  const compute::Gpu& gpu_;
  std::vector<Segment> segments_;
  bool open_ = false;          // the last segment accepts more kernels
  bool join_pending_ = false;  // the next segment waits for collectives started so far
  JoinFilter join_filter_;     // selects these collectives
};

}  // namespace

std::vector<Segment> segments_of(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind,
                                 const compute::Gpu& gpu, bool split) {
  SegmentBuilder builder(work, gpu);
  for (std::size_t part_index = 0; part_index < chunk.size(); ++part_index) {
    const ModelPart part = chunk[kind == PassKind::forward ? part_index : chunk.size() - 1 - part_index];
    builder.add(work.of(part).pass(kind));
    if (split) builder.finish_part();
  }
  return builder.take();
}

}  // namespace manyworlds::core::workload
