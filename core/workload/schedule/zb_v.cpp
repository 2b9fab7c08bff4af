// ZB-V (Qi et al. 2024, Zero Bubble Pipeline Parallelism, section 6): the V-shaped building block with the longest
// lifespan that 1F1B's memory allows, 2p chunks in flight. Rank r warms up with 2 (p - r) - 1 passes of chunk 0, until
// chunk 1 of the first micro-batch is ready, then with both chunks alternately; no rank is idle between its first and
// its last pass if F = B = W.
#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t round_trip = 6 * (ranks - 1);  // units of time from the first rank to the last and back
  return {4 * rank, round_trip + 1 - 2 * rank, round_trip + 2 + 4 * rank, 2 * round_trip + 3 - 2 * rank};
}

PassOrder warm_up(const Pipeline& pipeline, std::int64_t rank) {
  OrderWriter order(2);
  const auto forward = [&](std::int32_t chunk) {
    if (order.forwards(chunk) < pipeline.micro_batches) order.forward(chunk);
  };
  for (std::int64_t i = 0; i < 2 * (pipeline.ranks - rank) - 1; ++i) forward(0);
  forward(1);
  for (std::int64_t i = 0; i < rank; ++i) forward(0), forward(1);
  return order.take();
}

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  std::vector<PassOrder> all = block_orders(pipeline, times);
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    PassOrder& order = all[static_cast<std::size_t>(rank)];
    PassOrder warm_up_passes = warm_up(pipeline, rank);
    std::erase_if(order, [&](const PipelinePass& pass) {
      return std::find(warm_up_passes.begin(), warm_up_passes.end(), pass) != warm_up_passes.end();
    });
    order.insert(order.begin(), warm_up_passes.begin(), warm_up_passes.end());
  }
  return insert_weight_gradients(pipeline, StagePlacement::v_shape, all, 2 * pipeline.ranks);
}

}  // namespace

ScheduleType zb_v_schedule() {
  return {.name = "zb_v",
          .help =
              "zero bubble, V-shaped, chunks 0 and 1 folded over the ranks: no bubble where forward, input and "
              "weight gradients take as long, in 1F1B's memory",
          .orders = orders,
          .stage_placement = StagePlacement::v_shape,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
