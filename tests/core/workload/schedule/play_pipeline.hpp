// Pipelines on the streams: the programs of all ranks, passes as long as a test wants them, and transfers that take no
// time or a given one.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/stream/timeline.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/core/workload/schedule/pipelines.hpp"
#include "tests/core/workload/workload_models.hpp"

namespace manyworlds::core::stream {

struct PassTimes {
  Time forward = 100, input_gradient = 100, weight_gradient = 100;
  std::int64_t together_percent = 100;  // of their times, for two passes that run together

  Time of(workload::PassKind kind) const {
    const Time times[] = {forward, input_gradient + weight_gradient, input_gradient, weight_gradient};
    return times[static_cast<std::size_t>(kind)];
  }
};

/// The program that a rank of each stage runs, a layer a section. The first kernel of each pass takes all its time, so
/// that orders, waits and transfers are those of a real program.
inline std::vector<workload::Program> pipeline_programs(const workload::ScheduleType& type,
                                                        const workload::Pipeline& pipeline, const PassTimes& times) {
  workload::Strategy strategy;
  strategy.schedule = workload::schedule_by_name(type.name);
  strategy.pp = pipeline.ranks;
  strategy.virtual_stages = pipeline.chunks;
  strategy.global_batch = pipeline.micro_batches;
  workload::Model model = workload::gpt(strategy.stages().count(), 256, 4, 1'000);
  model.tied_embeddings = false;
  workload::Pipeline priced = pipeline;
  priced.costs = {times.forward, times.input_gradient, times.weight_gradient, 1, 1};
  const auto orders = type.orders(priced);
  std::vector<workload::Program> programs;
  for (std::int64_t stage = 0; stage < pipeline.ranks; ++stage) {
    std::map<workload::PipelinePass, bool> together;
    const workload::PassOrder& order = orders[static_cast<std::size_t>(stage)];
    for (std::size_t i = 0; i < order.size(); ++i)
      together[order[i]] = order[i].overlaps_next || (i > 0 && order[i - 1].overlaps_next);
    workload::Program& program =
        programs.emplace_back(workload::build_program(model, strategy, workload::round_gpu(), orders, stage));
    for (workload::Op& op : program.ops) {
      auto* kernel = std::get_if<workload::KernelOp>(&op.action);
      if (kernel == nullptr) continue;
      const workload::PipelinePass* pass = program.pass_of(op);
      kernel->duration_ps = 0;
      if (pass == nullptr || together.count(*pass) == 0) continue;
      kernel->duration_ps = times.of(pass->kind) * (together.at(*pass) ? times.together_percent : 100) / 100;
      together.erase(*pass);  // the kernels of a pass that follow take no time
    }
    REQUIRE(together.empty());
  }
  return programs;
}

/// Plays the stages: the n-th send of a stage meets the n-th receive of its neighbour.
inline Timeline play(const std::vector<workload::Program>& programs, Time transfer = 0, bool apart = false) {
  using workload::Role;
  const auto stages = static_cast<std::uint32_t>(programs.size());
  std::vector<std::uint32_t> each(stages);
  for (std::uint32_t i = 0; i < stages; ++i) each[i] = i;
  Timeline timeline(programs, each);
  if (apart) timeline.begin_unsynchronised();
  using Transfer = std::tuple<Role, std::uint32_t, std::uint32_t>;  // as the sender names it, who sends, which
  std::map<Transfer, std::vector<Entry>> waiting;
  std::map<std::pair<Role, std::uint32_t>, std::uint32_t> count;
  std::multimap<Time, std::pair<Entry, Time>> ends;
  // By role: as the sender names it, and how far away the sender is.
  const std::map<Role, std::pair<Role, std::uint32_t>> known{
      {Role::send_forward, {Role::send_forward, 0}},
      {Role::recv_forward, {Role::send_forward, stages - 1}},
      {Role::send_backward, {Role::send_backward, 0}},
      {Role::recv_backward, {Role::send_backward, 1}},
      {Role::send_forward_reverse, {Role::send_forward_reverse, 0}},
      {Role::recv_forward_reverse, {Role::send_forward_reverse, 1}},
      {Role::send_backward_reverse, {Role::send_backward_reverse, 0}},
      {Role::recv_backward_reverse, {Role::send_backward_reverse, stages - 1}},
      {Role::data, {Role::data, 0}}};  // of the two ranks that hold the same sections
  std::vector<Entry> entries;
  Time now = 0;
  timeline.begin(entries);
  while (true) {
    while (!entries.empty()) {
      const std::vector<Entry> batch = std::move(entries);
      entries.clear();
      for (const Entry& entry : batch) {
        const Role role = timeline.op(entry.rank, entry.op).collective()->role;
        const auto& [sends, away] = known.at(role);
        const std::uint32_t rank = entry.rank.value();
        std::uint32_t who = (rank + away) % stages;
        if (role == Role::data) who = std::min(rank, stages - 1 - rank);
        auto& met = waiting[{sends, who, count[{role, rank}]++}];
        met.push_back(entry);
        if (met.size() == 2)
          for (const Entry& member : met) ends.emplace(now + transfer, std::pair{member, now});
      }
      bool any = false;
      while (!ends.empty() && ends.begin()->first == now) {
        const auto [entry, began] = ends.begin()->second;
        ends.erase(ends.begin());
        timeline.complete(entry.rank, entry.op, began);
        any = true;
      }
      if (any) timeline.advance(now, entries);
    }
    if (timeline.finished()) return timeline;
    const Time next = std::min(timeline.next_end(), ends.empty() ? kNever : ends.begin()->first);
    if (next == kNever) return timeline;
    now = next;
    while (!ends.empty() && ends.begin()->first == now) {
      const auto [entry, began] = ends.begin()->second;
      ends.erase(ends.begin());
      timeline.complete(entry.rank, entry.op, began);
    }
    timeline.advance(now, entries);
  }
}

}  // namespace manyworlds::core::stream
