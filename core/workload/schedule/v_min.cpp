// V-Min (Qi et al. 2024, Pipeline Parallelism with Controllable Memory, section 3.3): the building block with the
// shortest lifespan, in which each pass follows the previous one immediately. About a third of 1F1B's activations.
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t gap =
      ranks % 3 == 0 ? 2 : 0;  // otherwise two passes of a rank would have the same time modulo six
  return {rank, 2 * ranks - rank - 1, 2 * ranks + gap + rank, 4 * ranks + gap - rank - 1};
}

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return insert_weight_gradients(pipeline, StagePlacement::v_shape, block_orders(pipeline, times),
                                 peak_in_flight(pipeline, times));
}

}  // namespace

ScheduleType v_min_schedule() {
  return {.name = "v_min",
          .help = "V-shaped, chunks 0 and 1 folded over the ranks, least memory: about a third of 1F1B's activations",
          .orders = orders,
          .stage_placement = StagePlacement::v_shape,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
