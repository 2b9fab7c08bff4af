// DualPipeV (deepseek-ai/DualPipe, dualpipev.py): DualPipe cut in half and folded. Rank r of p has virtual stages r and
// 2p - 1 - r; forward passes of one overlap with backward passes of the other. The bubble is (p - 1)(F&B + B - 3W),
// where B is a whole backward pass; 2p + 1 micro-batches and chunks are in flight.
#include <fmt/format.h>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return orders_by_rank(
      pipeline, [&](std::int64_t rank) { return dualpipe_order(pipeline.ranks, rank, pipeline.micro_batches, 0, {}); });
}

std::string infeasible_reason(const Pipeline& pipeline) {
  if (pipeline.micro_batches >= 2 * pipeline.ranks) return "";
  return fmt::format(
      "dualpipev needs at least 2 pp micro-batches, global_batch / (dp x micro_batch): micro-batches {}, pp {}",
      pipeline.micro_batches, pipeline.ranks);
}

}  // namespace

ScheduleType dualpipev_schedule() {
  return {.name = "dualpipev",
          .help = "DeepSeek's DualPipe folded: forward and backward passes overlap, parameters are stored once",
          .orders = orders,
          .stage_placement = StagePlacement::v_shape,
          .chunks = 2,
          .infeasible_reason = infeasible_reason,
          .overlaps_passes = true};
}

}  // namespace manyworlds::core::workload
