// ZB-V (Qi et al. 2024, Zero Bubble Pipeline Parallelism, section 6): the V-shaped building block with lives as long as
// 1F1B's memory allows, 2p chunks alive. Rank r warms up with 2 (p - r) - 1 passes of chunk 0, until chunk 1 of the
// first micro-batch is there, then with both in turn; no rank is idle from its first pass to its last while F = B = W.
#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t turn = 6 * (ranks - 1);  // there and back again
  return {4 * rank, turn + 1 - 2 * rank, turn + 2 + 4 * rank, 2 * turn + 3 - 2 * rank};
}

Schedule warm_up(const Pipeline& pipeline, std::int64_t rank) {
  OrderWriter order(2);
  const auto forward = [&](std::int32_t chunk) {
    if (order.forwards(chunk) < pipeline.micro_batches) order.forward(chunk);
  };
  for (std::int64_t i = 0; i < 2 * (pipeline.ranks - rank) - 1; ++i) forward(0);
  forward(1);
  for (std::int64_t i = 0; i < rank; ++i) forward(0), forward(1);
  return order.take();
}

std::vector<Schedule> orders(const Pipeline& pipeline) {
  std::vector<Schedule> all = block_orders(pipeline, times);
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    Schedule& order = all[static_cast<std::size_t>(rank)];
    Schedule begun = warm_up(pipeline, rank);
    std::erase_if(order, [&](const Slot& slot) { return std::find(begun.begin(), begun.end(), slot) != begun.end(); });
    order.insert(order.begin(), begun.begin(), begun.end());
  }
  return fill_with_weights(pipeline, Folding::vee, all, 2 * pipeline.ranks);
}

}  // namespace

ScheduleType zb_v_schedule() {
  return {.name = "zb_v",
          .help =
              "zero bubble, V-shaped, chunks 0 and 1 folded over the ranks: no bubble where forward, input and "
              "weight gradients take as long, in 1F1B's memory",
          .orders = orders,
          .folding = Folding::vee,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
