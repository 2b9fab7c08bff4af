// ZB-H2 (Qi et al. 2024, section 2.3): rank r warms up with 2 (p - r) - 1 forward passes, so that no rank is idle
// between its first and its last pass if F = B = W; 2p - 1 micro-batches are in flight. The bubble is (p - 1)(F + B -
// 2W).
#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    OrderWriter order(1);
    const std::int64_t warm_up = std::min(2 * (pipeline.ranks - rank) - 1, pipeline.micro_batches);
    while (order.forwards() < warm_up) order.forward(0);
    while (order.forwards() < pipeline.micro_batches) {
      order.input_gradient(0);
      if (order.backwards() > 2 * rank) order.weight_gradient();
      order.forward(0);
    }
    while (order.backwards() < pipeline.micro_batches) {
      order.input_gradient(0);
      if (order.backwards() > rank) order.weight_gradient();
    }
    while (order.deferred() > 0) order.weight_gradient();
    return order.take();
  });
}

}  // namespace

ScheduleType zb_h2_schedule() {
  return {.name = "zb_h2",
          .help =
              "zero bubble, handcrafted: no bubble where forward, input and weight gradients take as long, with the "
              "step's optimizer not waiting for all (stack.post_validation); at most 2 pp - 1 micro-batches alive",
          .orders = orders};
}

}  // namespace manyworlds::core::workload
