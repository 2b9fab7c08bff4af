// V-Min (Qi et al. 2024, Pipeline Parallelism with Controllable Memory, section 3.3): the building block of the
// shortest lives, each pass following the one before it at once. About a third of 1F1B's activations.
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t gap = ranks % 3 == 0 ? 2 : 0;  // or two passes of a rank would want the same sixth
  return {rank, 2 * ranks - rank - 1, 2 * ranks + gap + rank, 4 * ranks + gap - rank - 1};
}

std::vector<Schedule> orders(const Pipeline& pipeline) {
  return fill_with_weights(pipeline, Folding::vee, block_orders(pipeline, times), most_alive_in(pipeline, times));
}

}  // namespace

ScheduleType v_min_schedule() {
  return {.name = "v_min",
          .help = "V-shaped, chunks 0 and 1 folded over the ranks, least memory: about a third of 1F1B's activations",
          .orders = orders,
          .folding = Folding::vee,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
