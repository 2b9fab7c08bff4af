// ZB-H1 (Qi et al. 2024, section 2.2): 1F1B whose weight gradients fill the end of the step. In the steady phase rank r
// defers the weight gradients of r micro-batches, so that every rank keeps at most p micro-batches, as 1F1B's first
// rank does. The bubble is (p - 1)(F + B - W).
#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    OrderWriter order(1);
    const std::int64_t warm_up = std::min(pipeline.ranks - rank - 1, pipeline.micro_batches);
    while (order.forwards() < warm_up) order.forward(0);
    while (order.forwards() < pipeline.micro_batches) {
      order.forward(0);
      order.input_gradient(0);
      if (order.backwards() > rank) order.weight_gradient();
    }
    while (order.backwards() < pipeline.micro_batches) order.input_gradient(0), order.weight_gradient();
    while (order.deferred() > 0) order.weight_gradient();
    return order.take();
  });
}

}  // namespace

ScheduleType zb_h1_schedule() {
  return {.name = "zb_h1",
          .help =
              "zero bubble, handcrafted: 1F1B with gradients of weights put off; a third of its bubble, at most pp "
              "micro-batches alive",
          .orders = orders};
}

}  // namespace manyworlds::core::workload
