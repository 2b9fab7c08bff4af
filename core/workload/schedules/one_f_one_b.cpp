// 1F1B, PipeDream-Flush (Narayanan et al. 2021, section 2.2.1): pp - stage - 1 forward passes to warm up, then one
// forward and one backward in turn, then the backward passes that are left.
#include <algorithm>

#include "core/error.hpp"
#include "core/workload/schedules/schedules.hpp"

namespace manyworlds::core::workload::schedules {

Schedule one_f_one_b(const Strategy& strategy, std::int64_t stage) {
  MANYWORLDS_CHECK(strategy.virtual_stages == 1, "virtual_stages = {} without interleaving", strategy.virtual_stages);
  const auto micro_batches = static_cast<std::int32_t>(strategy.micro_batches());
  const auto warm_up = static_cast<std::int32_t>(std::min<std::int64_t>(strategy.pp - stage - 1, micro_batches));
  Schedule order;
  for (std::int32_t i = 0; i < warm_up; ++i) order.push_back({true, i, 0});
  for (std::int32_t i = warm_up; i < micro_batches; ++i) {
    order.push_back({true, i, 0});
    order.push_back({false, i - warm_up, 0});
  }
  for (std::int32_t i = micro_batches - warm_up; i < micro_batches; ++i) order.push_back({false, i, 0});
  return order;
}

}  // namespace manyworlds::core::workload::schedules
