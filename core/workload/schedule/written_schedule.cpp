// A schedule from a file (strategy.schedule_file). Its reader has checked that it is complete and free of deadlocks.
#include "core/workload/schedule/written_schedule.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<PassOrder> orders(const Pipeline& pipeline) {
  MANYWORLDS_CHECK(pipeline.written != nullptr, "no schedule is written");
  return pipeline.written->orders;
}

std::string infeasible_reason(const Pipeline& pipeline) {
  const WrittenSchedule* written = pipeline.written;
  if (written == nullptr) return "written needs a schedule_file";
  if (written->ranks == pipeline.ranks && written->chunks == pipeline.chunks &&
      written->micro_batches == pipeline.micro_batches)
    return "";
  return fmt::format(
      "the schedule_file is for pp {}, virtual_stages {} and {} micro-batches: pp {}, virtual_stages {}, "
      "micro-batches, "
      "global_batch / (dp x micro_batch), {}",
      written->ranks, written->chunks, written->micro_batches, pipeline.ranks, pipeline.chunks, pipeline.micro_batches);
}

}  // namespace

ScheduleType written_schedule() {
  return {.name = "written",
          .help = "the orders of schedule_file, as PyTorch's pipeline schedules write them (docs/formats.md)",
          .orders = orders,
          .chunks = ScheduleType::kAsWritten,
          .infeasible_reason = infeasible_reason,
          .overlaps_passes = true,
          .not_searched = "a file has orders for one number of ranks and micro-batches"};
}

sharing::Key key_of(const WrittenSchedule& schedule) {
  sharing::KeyWriter writer("written schedule");
  writer.integer(static_cast<std::int64_t>(schedule.stage_placement)).integer(schedule.chunks);
  for (const PassOrder& order : schedule.orders) {
    writer.integer(static_cast<std::int64_t>(order.size()));
    for (const PipelinePass& pass : order)
      writer.integer(static_cast<std::int64_t>(pass.kind))
          .integer(pass.micro_batch)
          .integer(pass.chunk)
          .integer(pass.overlaps_next);
  }
  return writer.finish();
}

}  // namespace manyworlds::core::workload
