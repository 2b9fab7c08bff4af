// The list of schedules: a new one is a new file here and one line below.
#include "core/error.hpp"
#include "core/workload/schedules/schedules.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr ScheduleEntry kSchedules[] = {
    {ScheduleKind::gpipe, "gpipe", "all forward passes, then all backward passes", schedules::gpipe},
    {ScheduleKind::one_f_one_b, "1f1b", "one forward, one backward in turn; at most pp micro-batches alive",
     schedules::one_f_one_b},
    {ScheduleKind::interleaved, "interleaved", "1F1B over several model chunks per rank: a smaller bubble",
     schedules::interleaved},
};

}  // namespace

std::span<const ScheduleEntry> registered_schedules() {
  return kSchedules;
}

Schedule schedule(const Strategy& strategy, std::int64_t stage) {
  MANYWORLDS_CHECK(stage >= 0 && stage < strategy.pp, "stage {} of {}", stage, strategy.pp);
  MANYWORLDS_CHECK(strategy.micro_batches() > 0, "global batch {} over dp {} x micro-batch {}", strategy.global_batch,
                   strategy.dp, strategy.micro_batch);
  for (const ScheduleEntry& entry : kSchedules)
    if (entry.kind == strategy.schedule) return entry.order(strategy, stage);
  MANYWORLDS_CHECK(false, "schedule {} is not registered", static_cast<int>(strategy.schedule));
  return {};
}

}  // namespace manyworlds::core::workload
