// V-Half (Qi et al. 2024, Pipeline Parallelism with Controllable Memory, section 3.3): forward passes of chunk 0 and
// backward passes of chunk 1 go from rank to rank every second unit. About half of 1F1B's activations and bubble.
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

BlockTimes times(std::int64_t ranks, std::int64_t rank) {
  const std::int64_t gap = ranks % 2 == 0 ? 3 : 0;  // or two passes of a rank would want the same sixth
  return {2 * rank, 3 * ranks - rank - 2, 3 * ranks + gap + 2 * rank - 1, 6 * ranks + gap - rank - 2};
}

std::vector<Schedule> orders(const Pipeline& pipeline) {
  return fill_with_weights(pipeline, Folding::vee, block_orders(pipeline, times), most_alive_in(pipeline, times));
}

}  // namespace

ScheduleType v_half_schedule() {
  return {.name = "v_half",
          .help = "V-shaped, chunks 0 and 1 folded over the ranks: about half of 1F1B's activations and of its bubble",
          .orders = orders,
          .folding = Folding::vee,
          .chunks = 2};
}

}  // namespace manyworlds::core::workload
