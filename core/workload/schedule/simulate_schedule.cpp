#include "core/workload/schedule/simulate_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace manyworlds::core::workload {
namespace {

/// The output of a pass: activations of a virtual stage, or gradients of its input.
struct PassOutput {
  std::int32_t micro_batch;
  std::int64_t virtual_stage;
  bool forward;
  auto operator<=>(const PassOutput&) const = default;
};

/// Returns the output that a pass depends on, if any; weight gradients depend on the input gradients of the same chunk.
std::optional<PassOutput> dependency_of(const StageMap& stage_map, std::int64_t rank, const PipelinePass& pass) {
  const std::int64_t virtual_stage = stage_map.of(rank, pass.chunk);
  if (pass.forward())
    return virtual_stage == 0 ? std::nullopt : std::optional(PassOutput{pass.micro_batch, virtual_stage - 1, true});
  if (pass.kind == PassKind::weight_gradient) return PassOutput{pass.micro_batch, virtual_stage, false};
  if (virtual_stage + 1 == stage_map.count()) return PassOutput{pass.micro_batch, virtual_stage, true};
  return PassOutput{pass.micro_batch, virtual_stage + 1, false};
}

class ScheduleSimulator {
 public:
  ScheduleSimulator(const StageMap& stage_map, const std::vector<PassOrder>& orders,
                    const std::function<Time(std::int64_t, const PipelinePass&)>& duration_of, Time transfer_ps)
      : stage_map_(stage_map), orders_(orders), duration_of_(duration_of), transfer_ps_(transfer_ps) {
    run_.completed_passes.resize(orders.size(), 0);
  }

  SimulatedSchedule simulate() {
    std::vector<Time> began(orders_.size(), kNever), ends(orders_.size(), 0);
    for (bool progressed = true; progressed;) {
      progressed = false;
      for (std::size_t rank = 0; rank < orders_.size(); ++rank)
        while (advance(rank, began[rank], ends[rank])) progressed = true;
    }
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      run_.step_ps = std::max(run_.step_ps, ends[rank]);
      if (began[rank] != kNever) run_.longest_rank_ps = std::max(run_.longest_rank_ps, ends[rank] - began[rank]);
    }
    return std::move(run_);
  }

 private:
  /// Runs the rank's next pass, and the pass that overlaps with it, if all their inputs are available.
  bool advance(std::size_t rank, Time& began, Time& now) {
    const PassOrder& order = orders_[rank];
    std::size_t& next = run_.completed_passes[rank];
    if (next == order.size()) return false;
    const std::size_t last = order[next].overlaps_next && next + 1 < order.size() ? next + 1 : next;
    Time begin = now, length = 0;
    for (std::size_t i = next; i <= last; ++i) {
      const auto ready = ready_at(static_cast<std::int64_t>(rank), order[i]);
      if (!ready) return false;
      begin = std::max(begin, *ready);
      length += duration_of_(static_cast<std::int64_t>(rank), order[i]);
    }
    began = std::min(began, begin);
    now = begin + length;
    for (; next <= last; ++next)
      if (order[next].kind != PassKind::weight_gradient)
        outputs_[{order[next].micro_batch, stage_map_.of(static_cast<std::int64_t>(rank), order[next].chunk),
                  order[next].forward()}] = {now, rank};
    return true;
  }

  std::optional<Time> ready_at(std::int64_t rank, const PipelinePass& pass) const {
    const auto needed = dependency_of(stage_map_, rank, pass);
    if (!needed) return 0;
    const auto found = outputs_.find(*needed);
    if (found == outputs_.end()) return std::nullopt;
    const auto& [at, producer] = found->second;
    return at + (static_cast<std::int64_t>(producer) == rank ? 0 : transfer_ps_);
  }

  const StageMap& stage_map_;
  const std::vector<PassOrder>& orders_;
  const std::function<Time(std::int64_t, const PipelinePass&)>& duration_of_;
  const Time transfer_ps_;
  SimulatedSchedule run_;
  std::map<PassOutput, std::pair<Time, std::size_t>> outputs_;  // time and rank of each output
};

}  // namespace

SimulatedSchedule simulate_schedule(const StageMap& stage_map, const std::vector<PassOrder>& orders,
                                    const std::function<Time(std::int64_t rank, const PipelinePass&)>& duration_of,
                                    Time transfer_ps) {
  return ScheduleSimulator(stage_map, orders, duration_of, transfer_ps).simulate();
}

std::string describe_deadlock(const StageMap& stage_map, const std::vector<PassOrder>& orders) {
  const SimulatedSchedule run = simulate_schedule(
      stage_map, orders, [](std::int64_t, const PipelinePass&) { return Time{1}; }, 0);
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (run.completed_passes[rank] == orders[rank].size()) continue;
    const PipelinePass& blocked = orders[rank][run.completed_passes[rank]];
    const PipelinePass& partner = blocked.overlaps_next ? orders[rank][run.completed_passes[rank] + 1] : blocked;
    for (const PipelinePass* pass : {&blocked, &partner}) {
      const auto needed = dependency_of(stage_map, static_cast<std::int64_t>(rank), *pass);
      if (!needed) continue;
      for (std::size_t other = 0; other < orders.size(); ++other)
        for (std::size_t i = run.completed_passes[other]; i < orders[other].size(); ++i) {
          const PipelinePass& later = orders[other][i];
          const bool is_producer = later.kind != PassKind::weight_gradient &&
                                   later.micro_batch == needed->micro_batch && later.forward() == needed->forward &&
                                   stage_map.of(static_cast<std::int64_t>(other), later.chunk) == needed->virtual_stage;
          if (!is_producer) continue;
          const std::string behind =
              i == run.completed_passes[other]
                  ? ""
                  : fmt::format(", which is queued behind {}", name_of(orders[other][run.completed_passes[other]]));
          return fmt::format("{} on rank {} waits for {} on rank {}{}", name_of(*pass), rank, name_of(later), other,
                             behind);
        }
    }
  }
  return "";
}

std::string name_of(const PipelinePass& pass) {
  constexpr const char* kNames[] = {"forward", "backward", "input gradients", "weight gradients"};
  return fmt::format("{} of micro-batch {}, chunk {}", kNames[static_cast<std::size_t>(pass.kind)], pass.micro_batch,
                     pass.chunk);
}

}  // namespace manyworlds::core::workload
