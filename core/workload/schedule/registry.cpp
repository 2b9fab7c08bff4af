// The list of schedules: one line each, in the order in which `manyworlds list` shows them.
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

// clang-format off
#define MANYWORLDS_SCHEDULES(entry) \
  entry(one_f_one_b)                \
  entry(gpipe)                      \
  entry(interleaved)                \
  entry(zb_h1)                      \
  entry(zb_h2)                      \
  entry(zb_1p)                      \
  entry(zb_2p)                      \
  entry(zb_v)                       \
  entry(v_half)                     \
  entry(v_min)                      \
  entry(dualpipe)                   \
  entry(dualpipev)                  \
  entry(written)
// clang-format on

#define MANYWORLDS_DECLARE(name) ScheduleType name##_schedule();
MANYWORLDS_SCHEDULES(MANYWORLDS_DECLARE)

const std::vector<ScheduleType>& schedules() {
#define MANYWORLDS_CALL(name) name##_schedule(),
  static const std::vector<ScheduleType> all{MANYWORLDS_SCHEDULES(MANYWORLDS_CALL)};
  return all;
}

const ScheduleType& schedule_type(ScheduleKind kind) {
  return schedules().at(static_cast<std::size_t>(kind));
}

ScheduleKind schedule_by_name(std::string_view name) {
  for (std::size_t i = 0; i < schedules().size(); ++i)
    if (schedules()[i].name == name) return static_cast<ScheduleKind>(i);
  MANYWORLDS_CHECK(false, "no schedule '{}'", name);
}

std::string schedule_infeasible_reason(const ScheduleType& type, const Pipeline& pipeline) {
  const bool several = type.chunks == ScheduleType::kTwoOrMore;
  if (type.chunks != ScheduleType::kAsWritten && (several ? pipeline.chunks < 2 : pipeline.chunks != type.chunks))
    return fmt::format("{} has {} model chunks on a rank: virtual_stages {}", type.name,
                       several ? "two or more" : std::to_string(type.chunks),
                       several ? "> 1" : std::to_string(type.chunks));
  if ((several || type.stage_placement != StagePlacement::loop) && pipeline.ranks < 2)
    return fmt::format("{} needs pp > 1", type.name);
  return type.infeasible_reason != nullptr ? type.infeasible_reason(pipeline) : "";
}

}  // namespace manyworlds::core::workload
