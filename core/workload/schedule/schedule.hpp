// Pipeline schedules: the order in which a pipeline rank runs the passes of its micro-batches through its model chunks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::workload {

/// A backward pass is whole or split in two (Qi et al. 2024, Zero Bubble Pipeline Parallelism, section 2): input
/// gradients, which the previous rank waits for, and weight gradients, which no rank waits for.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// One pass of one micro-batch through one model chunk of a rank.
struct PipelinePass {
  PassKind kind = PassKind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;      // index among this rank's chunks
  bool overlaps_next = false;  // runs together with the next pass; each one computes while the other waits

  bool forward() const { return kind == PassKind::forward; }
  /// Whether this is the first, or the last, pass of a chunk's backward pass; a whole backward pass is both.
  bool begins_backward() const { return kind == PassKind::backward || kind == PassKind::input_gradient; }
  bool ends_backward() const { return kind == PassKind::backward || kind == PassKind::weight_gradient; }
  auto operator<=>(const PipelinePass&) const = default;
};
using PassOrder = std::vector<PipelinePass>;

/// Placement of a model's virtual stages (consecutive layers, in forward order) on p pipeline ranks. loop: virtual
/// stage i is on rank i mod p. v_shape: rank r has virtual stages r and 2p - 1 - r. bidirectional: p virtual stages,
/// each on two ranks: rank r has r and p - 1 - r; half of the micro-batches enter at the first rank, half at the last.
enum class StagePlacement : std::uint8_t { loop, v_shape, bidirectional };

/// Costs of the passes of one micro-batch, averaged over the pipeline ranks.
struct PassCosts {
  Time forward_ps = 1, input_gradient_ps = 1, weight_gradient_ps = 1;
  std::int64_t saved_bytes = 1;  // saved by a micro-batch from its forward pass on
  std::int64_t weight_gradient_input_bytes =
      1;  // the share of saved_bytes that is needed until the weight gradients are done
};

struct WrittenSchedule;

/// Everything that determines the order of passes.
struct Pipeline {
  std::int64_t ranks = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;                   // per rank
  PassCosts costs = {};                      // used by schedules with needs_costs
  const WrittenSchedule* written = nullptr;  // used by the schedule `written`
};

struct ScheduleType {
  std::string name, help;
  std::vector<PassOrder> (*orders)(const Pipeline&);  // returns the orders by rank
  StagePlacement stage_placement = StagePlacement::loop;
  std::int64_t chunks = 1;  // per rank; kTwoOrMore: 2 or more; kAsWritten: as the schedule file has them
  std::string (*infeasible_reason)(const Pipeline&) = nullptr;  // returns why a pipeline cannot run it; empty if it can
  bool needs_costs = false;
  bool has_formula = false;      // its bubble is 1F1B's, divided by the chunks per rank, and backward passes are whole
  bool overlaps_passes = false;  // passes may run together (PipelinePass::overlaps_next)
  /// If ranks wait for transfers, the outputs of a forward pass and of the backward pass after it are sent together.
  bool paired_exchange = false;
  std::string not_searched = "";  // why a search does not try it unless it is named; empty: it does
  static constexpr std::int64_t kTwoOrMore = 0, kAsWritten = -1;
};

/// Index into schedules(). The first schedule is the default.
enum class ScheduleKind : std::uint8_t {};

/// Returns all schedules, in the order in which they are listed.
const std::vector<ScheduleType>& schedules();
const ScheduleType& schedule_type(ScheduleKind kind);
/// Throws InternalError if no schedule has this name.
ScheduleKind schedule_by_name(std::string_view name);

/// Returns why `type` cannot run on that pipeline: a wrong number of chunks, too few ranks, or its own reason. Empty if
/// it can.
std::string schedule_infeasible_reason(const ScheduleType& type, const Pipeline& pipeline);

}  // namespace manyworlds::core::workload
