// Interleaved 1F1B (Narayanan et al. 2021, section 2.2.2), in Megatron-LM's order: micro-batches go in groups of pp
// through chunk 0, then chunk 1, …; backward passes take the chunks from the last.
#include <algorithm>

#include "core/error.hpp"
#include "core/workload/schedules/schedules.hpp"

namespace manyworlds::core::workload::schedules {
namespace {

/// The k-th forward or backward pass of any rank.
Slot slot(const Strategy& strategy, bool forward, std::int64_t k) {
  const std::int64_t group = strategy.pp * strategy.virtual_stages;
  const std::int64_t turn = k % group / strategy.pp;
  const std::int64_t chunk = forward ? turn : strategy.virtual_stages - 1 - turn;
  const std::int64_t micro_batch = k / group * strategy.pp + k % strategy.pp;
  return {forward, static_cast<std::int32_t>(micro_batch), static_cast<std::int32_t>(chunk)};
}

}  // namespace

Schedule interleaved(const Strategy& strategy, std::int64_t stage) {
  const std::int64_t micro_batches = strategy.micro_batches();
  MANYWORLDS_CHECK(micro_batches % strategy.pp == 0, "{} micro-batches in groups of pp = {}", micro_batches,
                   strategy.pp);
  const std::int64_t passes = micro_batches * strategy.virtual_stages;
  const std::int64_t warm_up =
      std::min(2 * (strategy.pp - stage - 1) + (strategy.virtual_stages - 1) * strategy.pp, passes);
  Schedule order;
  for (std::int64_t k = 0; k < passes + warm_up; ++k) {
    if (k < passes) order.push_back(slot(strategy, true, k));
    if (k >= warm_up) order.push_back(slot(strategy, false, k - warm_up));
  }
  return order;
}

}  // namespace manyworlds::core::workload::schedules
