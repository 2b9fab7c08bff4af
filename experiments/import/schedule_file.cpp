// Parses pipeline schedules: one line per rank, one action per cell (stage, kind of pass, micro-batch).
#include "experiments/import/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/workload/schedule/simulate_schedule.hpp"
#include "core/workload/schedule/stage_map.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using core::workload::PassKind;
using core::workload::PassOrder;
using core::workload::PipelinePass;
using core::workload::StageMap;
using core::workload::StagePlacement;
using core::workload::WrittenSchedule;

constexpr std::int64_t kMaxRanks = 1'024, kMaxStages = 65'536, kMaxMicroBatches = 1'000'000;
constexpr std::size_t kMaxShownCharacters = 40;  // characters of a cell that a message shows

struct Action {
  std::int64_t stage = 0;
  PassKind kind = PassKind::forward;
  std::int32_t micro_batch = 0;
  bool overlaps_next = false;
};
struct Line {
  int number = 0;
  std::vector<Action> actions;
};

constexpr std::string_view kBlanks = " \t\r\"";

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : name_(name) { read_lines(text); }

  WrittenSchedule result() {
    WrittenSchedule schedule;
    schedule.ranks = static_cast<std::int64_t>(lines_.size());
    place_stages(schedule);
    for (const Line& line : lines_) {
      PassOrder& order = schedule.orders.emplace_back();
      for (const Action& action : line.actions) {
        const auto chunk = static_cast<std::int32_t>(action.stage / schedule.ranks);
        order.push_back({action.kind, action.micro_batch, chunk, action.overlaps_next});
        schedule.micro_batches = std::max<std::int64_t>(schedule.micro_batches, action.micro_batch + 1);
      }
    }
    check_passes(schedule);
    const std::string deadlock =
        core::workload::describe_deadlock({schedule.stage_placement, schedule.ranks, schedule.chunks}, schedule.orders);
    if (!deadlock.empty()) throw InputError("the schedule cannot run: " + deadlock, name_, lines_.front().number);
    return schedule;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const { throw InputError(what, name_, line); }

  void read_lines(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      ++number;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end), kBlanks);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty() || line.front() == '#') continue;
      if (static_cast<std::int64_t>(lines_.size()) == kMaxRanks)
        fail(number, fmt::format("more than {} ranks", kMaxRanks));
      lines_.push_back({number, {}});
      read_cells(line);
    }
    if (lines_.empty()) fail(1, "the schedule has no rank; give a line of actions for each, as in 0F0,0F1,0B0,0B1");
  }

  void read_cells(std::string_view line) {
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      const std::string_view cell = trimmed(line.substr(0, comma), kBlanks);
      if (more) line.remove_prefix(comma + 1);
      if (!cell.empty()) read_cell(cell);
    }
  }

  /// Parses a cell: 2F5, or (2F5;1B3)OVERLAP_F_B for two overlapped passes.
  void read_cell(std::string_view cell) {
    std::vector<Action>& actions = lines_.back().actions;
    constexpr std::string_view kOverlapSuffix = ")OVERLAP_F_B";
    if (cell.front() != '(') return actions.push_back(action_of(cell, cell));
    const std::size_t between = cell.find(';');
    if (!cell.ends_with(kOverlapSuffix) || between == std::string_view::npos) refuse(cell);
    const std::string_view inside = cell.substr(0, cell.size() - kOverlapSuffix.size());
    Action first = action_of(trimmed(inside.substr(1, between - 1), kBlanks), cell);
    const Action second = action_of(trimmed(inside.substr(between + 1), kBlanks), cell);
    if (first.kind != PassKind::forward || second.kind != PassKind::backward) refuse(cell);
    first.overlaps_next = true;
    actions.push_back(first);
    actions.push_back(second);
  }

  [[noreturn]] void refuse(std::string_view cell) const {
    fail(
        lines_.back().number,
        fmt::format("'{}' is no action; give a stage, one of F, B, I, W (forward, backward, gradients of the input, of "
                    "weights) and a micro-batch, as in 0F3, or two together as in (0F3;2B1)OVERLAP_F_B",
                    cell.substr(0, kMaxShownCharacters)));
  }

  Action action_of(std::string_view text, std::string_view cell) const {
    Action result;
    std::int64_t micro_batch = 0;
    const char* const end = text.data() + text.size();
    const auto stage = std::from_chars(text.data(), end, result.stage);
    if (stage.ec != std::errc() || stage.ptr == end) refuse(cell);
    constexpr std::string_view kKinds = "FBIW";
    const std::size_t kind = kKinds.find(*stage.ptr);
    if (kind == std::string_view::npos) refuse(cell);
    result.kind = static_cast<PassKind>(kind);
    const auto batch = std::from_chars(stage.ptr + 1, end, micro_batch);
    if (batch.ec != std::errc() || batch.ptr != end) refuse(cell);
    if (result.stage < 0 || result.stage >= kMaxStages || micro_batch < 0 || micro_batch >= kMaxMicroBatches)
      fail(lines_.back().number, fmt::format("'{}': stages are below {}, micro-batches below {}",
                                             cell.substr(0, kMaxShownCharacters), kMaxStages, kMaxMicroBatches));
    result.micro_batch = static_cast<std::int32_t>(micro_batch);
    return result;
  }

  /// Determines the placement of stages: a loop, or a V.
  void place_stages(WrittenSchedule& schedule) const {
    std::map<std::int64_t, std::size_t> rank_of;
    for (std::size_t rank = 0; rank < lines_.size(); ++rank)
      for (const Action& action : lines_[rank].actions) {
        const auto [known, is_new] = rank_of.try_emplace(action.stage, rank);
        if (known->second != rank)
          fail(lines_[rank].number,
               fmt::format("stage {} is on rank {} and on rank {}", action.stage, known->second, rank));
      }
    const auto stages = static_cast<std::int64_t>(rank_of.size());
    if (rank_of.empty() || rank_of.rbegin()->first != stages - 1 || stages % schedule.ranks != 0)
      fail(lines_.front().number,
           fmt::format("stages must be numbered from 0 without gaps, as many on each of the {} ranks", schedule.ranks));
    schedule.chunks = stages / schedule.ranks;
    for (const StagePlacement stage_placement : {StagePlacement::loop, StagePlacement::v_shape}) {
      if (stage_placement == StagePlacement::v_shape && (schedule.chunks != 2 || schedule.ranks < 2)) continue;
      const StageMap stage_map(stage_placement, schedule.ranks, schedule.chunks);
      bool is_placed_so = true;
      for (std::int64_t rank = 0; rank < schedule.ranks; ++rank)
        for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
          is_placed_so &= rank_of.at(stage_map.of(rank, chunk)) == static_cast<std::size_t>(rank);
      if (!is_placed_so) continue;
      schedule.stage_placement = stage_placement;
      return;
    }
    fail(lines_.front().number,
         fmt::format("stages must lie in a loop (stage s on rank s mod {0}) or, two on each rank, in a "
                     "V (rank r has r and 2 x {0} - 1 - r)",
                     schedule.ranks));
  }

  void check_passes(const WrittenSchedule& schedule) const {
    for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
      const int line = lines_[rank].number;
      enum : int { kNothing, kForward, kInput, kAll };
      std::map<std::pair<std::int32_t, std::int32_t>, int> pass_states;
      for (const PipelinePass& slot : schedule.orders[rank]) {
        int& state = pass_states[{slot.micro_batch, slot.chunk}];
        const int before = slot.forward() ? kNothing : slot.begins_backward() ? kForward : kInput;
        if (state != before)
          fail(line, fmt::format("rank {}: {} {}", rank, name_of(slot),
                                 state > before ? "is there twice" : "comes too early"));
        state = slot.forward() ? kForward : slot.ends_backward() ? kAll : kInput;
      }
      for (std::int32_t i = 0; i < schedule.micro_batches; ++i)
        for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
          const auto found = pass_states.find({i, chunk});
          const int state = found == pass_states.end() ? kNothing : found->second;
          if (state == kAll) continue;
          const PassKind missing_kind = state == kNothing   ? PassKind::forward
                                        : state == kForward ? PassKind::backward
                                                            : PassKind::weight_gradient;
          fail(line, fmt::format("rank {}: {} is missing", rank, name_of(PipelinePass{missing_kind, i, chunk})));
        }
    }
  }

  const std::string& name_;
  std::vector<Line> lines_;
};

}  // namespace

WrittenSchedule parse_schedule(std::string_view text, const std::string& name) {
  return Reader(text, name).result();
}

}  // namespace manyworlds::experiments::import
