// Interleaved 1F1B (Narayanan et al. 2021, section 2.2.2), in Megatron-LM's order: groups of p micro-batches go through
// chunk 0, then chunk 1, …; backward passes go through the chunks in reverse.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

/// Returns the chunk of the k-th forward pass, which is the same on every rank.
std::int32_t chunk_of(const Pipeline& pipeline, std::int64_t k) {
  return static_cast<std::int32_t>(k % (pipeline.ranks * pipeline.chunks) / pipeline.ranks);
}

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  const std::int64_t passes = pipeline.micro_batches * pipeline.chunks;
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    const std::int64_t warm_up =
        std::min(2 * (pipeline.ranks - rank - 1) + (pipeline.chunks - 1) * pipeline.ranks, passes);
    OrderWriter order(pipeline.chunks);
    for (std::int64_t k = 0; k < passes + warm_up; ++k) {
      if (k < passes) order.forward(chunk_of(pipeline, k));
      if (k >= warm_up)
        order.backward(static_cast<std::int32_t>(pipeline.chunks) - 1 - chunk_of(pipeline, k - warm_up));
    }
    return order.take();
  });
}

std::string infeasible_reason(const Pipeline& pipeline) {
  if (pipeline.micro_batches % pipeline.ranks == 0) return "";
  return fmt::format(
      "interleaved needs its micro-batches, global_batch / (dp x micro_batch), to be a multiple of pp: "
      "micro-batches {}, pp {}",
      pipeline.micro_batches, pipeline.ranks);
}

}  // namespace

ScheduleType interleaved_schedule() {
  return {.name = "interleaved",
          .help = "1F1B over several model chunks per rank: a smaller bubble",
          .orders = orders,
          .chunks = ScheduleType::kTwoOrMore,
          .infeasible_reason = infeasible_reason,
          .has_formula = true,
          .paired_exchange = true};
}

}  // namespace manyworlds::core::workload
