// V-Half (Qi et al. 2024, Pipeline Parallelism with Controllable Memory, section 3.3): forward passes of chunk 0 and
// backward passes of chunk 1 move from rank to rank every second unit. About half of 1F1B's activations and bubble.
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t gap =
      ranks % 2 == 0 ? 3 : 0;  // otherwise two passes of a rank would have the same time modulo six
  return {2 * rank, 3 * ranks - rank - 2, 3 * ranks + gap + 2 * rank - 1, 6 * ranks + gap - rank - 2};
}

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return insert_weight_gradients(pipeline, StagePlacement::v_shape, block_orders(pipeline, times),
                                 peak_in_flight(pipeline, times));
}

}  // namespace

ScheduleType v_half_schedule() {
  return {.name = "v_half",
          .help = "V-shaped, chunks 0 and 1 folded over the ranks: about half of 1F1B's activations and of its bubble",
          .orders = orders,
          .stage_placement = StagePlacement::v_shape,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
