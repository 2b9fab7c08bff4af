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
    if (join_)
      compute(StepPart::forward, 0);  // a chunk without layers may end in a collective, which must be waited for
    return std::move(segments_);
  }

 private:
  void add(const WorkItem& work, StepPart category) {
    const bool launched = work_.launched_by_host(work);
    if (const KernelWork* kernel = work.kernel()) {
      compute(category, kernel->cost.ps);
      if (launched) launches_.kernels += kernel->launches;
      return;
    }
    open_ = false;
    if (const CollectiveStart* start = work.start()) {
      segments_.push_back({*start, std::exchange(join_, std::nullopt)});
      if (launched) ++launches_.collectives;
    } else {
      require_join(std::get<Join>(work.action));
    }
  }

  /// Merges a join into the pending one; one of the two must wait for everything that the other waits for.
  void require_join(const Join& join) {
    const Join known = join_.value_or(join);
    MANYWORLDS_CHECK(!known.role || !join.role || known.role == join.role, "a join for two roles");
    join_ = Join{join.role ? known.role : std::nullopt, std::min(join.except_last, known.except_last)};
  }

  void compute(StepPart category, Time duration_ps) {
    if (!open_ || kernels_of_last().category != category)
      segments_.push_back({KernelOp{category, 0}, std::exchange(join_, std::nullopt)});
    open_ = true;
    kernels_of_last().duration_ps += duration_ps;
  }
  KernelOp& kernels_of_last() { return std::get<KernelOp>(segments_.back().action); }

  const StageWork& work_;
  std::vector<Segment> segments_;
  bool open_ = false;           // the last segment accepts more kernels
  std::optional<Join> join_;    // of the next segment
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
