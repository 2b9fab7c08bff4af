// DualPipeV (deepseek-ai/DualPipe, dualpipev.py): DualPipe cut in half and folded. Rank r of p has sections r and
// 2p - 1 - r, forward passes of one run beside backward passes of the other. Bubble (p - 1)(F&B + B - 3W), B a whole
// backward pass; 2p + 1 micro-batches and chunks alive.
#include <fmt/format.h>

#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<Schedule> orders(const Pipeline& pipeline) {
  return of_each_rank(
      pipeline, [&](std::int64_t rank) { return dual_order(pipeline.ranks, rank, pipeline.micro_batches, 0, {}); });
}

std::string fault(const Pipeline& pipeline) {
  if (pipeline.micro_batches >= 2 * pipeline.ranks) return "";
  return fmt::format(
      "dualpipev needs at least 2 pp micro-batches, global_batch / (dp x micro_batch): micro-batches {}, pp {}",
      pipeline.micro_batches, pipeline.ranks);
}

}  // namespace

ScheduleType dualpipev_schedule() {
  return {.name = "dualpipev",
          .help = "DeepSeek's DualPipe folded: forward beside backward passes, parameters once",
          .orders = orders,
          .folding = Folding::vee,
          .chunks = 2,
          .fault = fault};
}

}  // namespace manyworlds::core::workload
