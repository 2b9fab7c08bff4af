// GPipe (Huang et al. 2019): every forward pass, then every backward pass, in the same order (Narayanan et al. 2021,
// figure 3).
#include "core/error.hpp"
#include "core/workload/schedules/schedules.hpp"

namespace manyworlds::core::workload::schedules {

Schedule gpipe(const Strategy& strategy, std::int64_t) {
  MANYWORLDS_CHECK(strategy.virtual_stages == 1, "virtual_stages = {} without interleaving", strategy.virtual_stages);
  const auto micro_batches = static_cast<std::int32_t>(strategy.micro_batches());
  Schedule order;
  for (const bool forward : {true, false})
    for (std::int32_t i = 0; i < micro_batches; ++i) order.push_back({forward, i, 0});
  return order;
}

}  // namespace manyworlds::core::workload::schedules
