// GPipe (Huang et al. 2019): all forward passes, then all backward passes in the same order (Narayanan et al. 2021,
// figure 3).
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  OrderWriter order(1);
  for (std::int64_t i = 0; i < pipeline.micro_batches; ++i) order.forward(0);
  for (std::int64_t i = 0; i < pipeline.micro_batches; ++i) order.backward(0);
  return std::vector<PassOrder>(static_cast<std::size_t>(pipeline.ranks), order.take());
}

}  // namespace

ScheduleType gpipe_schedule() {
  return {
      .name = "gpipe", .help = "all forward passes, then all backward passes", .orders = orders, .has_formula = true};
}

}  // namespace manyworlds::core::workload
