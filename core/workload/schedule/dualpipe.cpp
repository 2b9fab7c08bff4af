// DualPipe (DeepSeek-AI 2024, DeepSeek-V3, section 3.2.1; deepseek-ai/DualPipe, dualpipe.py): every virtual stage is on
// two ranks, r and p - 1 - r; half of the micro-batches enter at the first rank and half at the last, so that forward
// passes of one half overlap with backward passes of the other. The bubble is (p / 2 - 1)(F&B + B - 3W), where B is a
// whole backward pass; p + 1 micro-batches and chunks are in flight.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  const std::int64_t half = pipeline.micro_batches / 2;
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    const std::int64_t from_end = std::min(rank, pipeline.ranks - 1 - rank);
    return dualpipe_order(pipeline.ranks / 2, from_end, half, rank == from_end ? 0 : 1,
                          {0, static_cast<std::int32_t>(half)});
  });
}

std::string infeasible_reason(const Pipeline& pipeline) {
  if (pipeline.ranks % 2 != 0) return fmt::format("dualpipe needs an even pp: pp {}", pipeline.ranks);
  if (pipeline.micro_batches % 2 == 0 && pipeline.micro_batches >= 2 * pipeline.ranks) return "";
  return fmt::format(
      "dualpipe needs an even number of micro-batches, global_batch / (dp x micro_batch), and at least 2 pp: "
      "micro-batches {}, pp {}",
      pipeline.micro_batches, pipeline.ranks);
}

}  // namespace

ScheduleType dualpipe_schedule() {
  return {.name = "dualpipe",
          .help =
              "DeepSeek-V3's: micro-batches enter at both ends, forward and backward passes overlap, parameters are "
              "stored twice",
          .orders = orders,
          .stage_placement = StagePlacement::bidirectional,
          .chunks = 2,
          .infeasible_reason = infeasible_reason,
          .overlaps_passes = true};
}

}  // namespace manyworlds::core::workload
