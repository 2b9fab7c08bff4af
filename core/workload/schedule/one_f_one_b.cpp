// 1F1B, PipeDream-Flush (Narayanan et al. 2021, section 2.2.1): p - r - 1 forward passes to warm up, then forward and
// backward passes alternately, then the remaining backward passes.
#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    const std::int64_t warm_up = std::min(pipeline.ranks - rank - 1, pipeline.micro_batches);
    OrderWriter order(1);
    for (std::int64_t i = 0; i < warm_up; ++i) order.forward(0);
    for (std::int64_t i = warm_up; i < pipeline.micro_batches; ++i) order.forward(0), order.backward(0);
    for (std::int64_t i = 0; i < warm_up; ++i) order.backward(0);
    return order.take();
  });
}

}  // namespace

ScheduleType one_f_one_b_schedule() {
  return {.name = "1f1b",
          .help = "one forward and one backward pass alternately; at most pp micro-batches in flight",
          .orders = orders,
          .has_formula = true};
}

}  // namespace manyworlds::core::workload
