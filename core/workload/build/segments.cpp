// Merging of the kernels between two communications into segments.
#include "core/workload/build/segments.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {
namespace {

class SegmentBuilder {
 public:
  explicit SegmentBuilder(const StageWork& work) : work_(work) {}

  /// Adds the pass of a part. Equal parts in a row are launched as one section, since the host is as fast in all of
  /// them. In a forward pass the host cannot launch experts before it knows their tokens, for which it waits.
  void add(ModelPart part, PassKind kind) {
    if (section_part_ != part) end_section();
    section_part_ = part;
    bool knows_counts = kind != PassKind::forward;
    for (const Phase& phase : work_.of(part).pass(kind))
      for (const WorkItem& work : phase.ops) {
        if (!knows_counts && work.needs_token_counts && work_.launched_by_host(work)) {
          end_section();
          section_waits_ = knows_counts = true;
        }
        add(work, phase.category);
        if (!work_.launched_by_host(work)) continue;
        launches_.kernels += work.kind == WorkItem::Kind::kernel ? work.launches : 0;
        launches_.collectives += work.kind == WorkItem::Kind::start ? 1 : 0;
      }
  }

  void end_section() {
    if (!work_.launch_times.any()) return;
    const Time launch_ps = work_.launch_times.of(std::exchange(launches_, {}));
    if (launch_ps > 0 && section_begin_ < segments_.size()) {
      segments_[section_begin_].launch_ps = launch_ps;
      segments_[section_begin_].launch_waits = section_waits_;
      open_ = false;
      compute(StepPart::host, 0);
      segments_.back().ends_launch = true;
    }
    section_begin_ = segments_.size();
    section_waits_ = open_ = false;
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
  void add(const WorkItem& work, StepPart category) {
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
    }
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
  std::vector<Segment> segments_;
  bool open_ = false;           // the last segment accepts more kernels
  bool join_pending_ = false;   // the next segment waits for collectives started so far
  JoinFilter join_filter_;      // selects these collectives
  compute::HostWork launches_;  // of the section so far
  std::size_t section_begin_ = 0;
  bool section_waits_ = false;
  std::optional<ModelPart> section_part_;
};

}  // namespace

std::vector<Segment> segments_of(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind,
                                 bool split) {
  SegmentBuilder builder(work);
  for (std::size_t part_index = 0; part_index < chunk.size(); ++part_index) {
    const ModelPart part = chunk[kind == PassKind::forward ? part_index : chunk.size() - 1 - part_index];
    builder.add(part, kind);
    if (part_index + 1 == chunk.size()) builder.end_section();
    if (split) builder.finish_part();
  }
  return builder.take();
}

}  // namespace manyworlds::core::workload
