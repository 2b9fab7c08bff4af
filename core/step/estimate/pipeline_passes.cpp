#include "core/step/estimate/pipeline_passes.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::core::step {
namespace {

using workload::PassKind;
using workload::PassOrder;
using workload::PipelinePass;
using workload::StageMap;

/// Where the outputs of passes stand: activations of a virtual stage, or gradients of its input.
class Outputs {
 public:
  Outputs(const StageMap& stage_map, const std::vector<PassOrder>& orders, std::uint32_t none) : stage_map_(stage_map) {
    std::int32_t micro_batches = 0;
    for (const PassOrder& order : orders)
      for (const PipelinePass& pass : order) micro_batches = std::max(micro_batches, pass.micro_batch + 1);
    passes_.resize(static_cast<std::size_t>(2 * micro_batches * stage_map.count()), none);
  }

  std::uint32_t& of(std::size_t rank, const PipelinePass& pass) {
    return at(pass.micro_batch, stage_of(rank, pass), pass.forward());
  }
  /// Returns the output that a pass needs; null if it needs none. Weight gradients need the input gradients of their
  /// chunk.
  std::uint32_t* needed_by(std::size_t rank, const PipelinePass& pass) {
    const std::int64_t stage = stage_of(rank, pass);
    if (pass.forward()) return stage == 0 ? nullptr : &at(pass.micro_batch, stage - 1, true);
    if (pass.kind == PassKind::weight_gradient) return &at(pass.micro_batch, stage, false);
    if (stage + 1 == stage_map_.count()) return &at(pass.micro_batch, stage, true);
    return &at(pass.micro_batch, stage + 1, false);
  }

 private:
  std::int64_t stage_of(std::size_t rank, const PipelinePass& pass) const {
    return stage_map_.of(static_cast<std::int64_t>(rank), pass.chunk);
  }
  std::uint32_t& at(std::int32_t micro_batch, std::int64_t stage, bool forward) {
    return passes_.at(static_cast<std::size_t>(2 * (micro_batch * stage_map_.count() + stage) + (forward ? 1 : 0)));
  }

  const StageMap& stage_map_;
  std::vector<std::uint32_t> passes_;
};

/// Marks the first forward pass, and the last pass with weight gradients, of each chunk.
template <class Passes>
void mark_ends(Passes& passes) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen;
  const auto is_new = [&](const auto& pass) {
    const std::pair chunk(pass.stage, pass.chunk);
    if (std::find(seen.begin(), seen.end(), chunk) != seen.end()) return false;
    seen.push_back(chunk);
    return true;
  };
  for (auto& pass : passes)
    if (pass.kind == PassKind::forward) pass.first = is_new(pass);
  seen.clear();
  for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass)
    if (pass->kind == PassKind::backward || pass->kind == PassKind::weight_gradient) pass->last = is_new(*pass);
}

}  // namespace

PipelinePasses::PipelinePasses(const StageMap& stage_map, const std::vector<PassOrder>& orders)
    : stages_(orders.size()) {
  Outputs outputs(stage_map, orders, kNone);
  std::vector<std::size_t> done(orders.size(), 0);
  std::size_t all = 0;
  for (const PassOrder& order : orders) all += order.size();
  const auto is_ready = [&](std::size_t rank, const PipelinePass& pass) {
    const std::uint32_t* needed = outputs.needed_by(rank, pass);
    return needed == nullptr || *needed != kNone;
  };
  const auto run_next = [&](std::size_t rank) {
    const PassOrder& order = orders[rank];
    std::size_t& next = done[rank];
    if (next == order.size()) return false;
    const std::size_t last = order[next].overlaps_next && next + 1 < order.size() ? next + 1 : next;
    for (std::size_t i = next; i <= last; ++i)
      if (!is_ready(rank, order[i])) return false;
    const std::size_t first = passes_.size();
    for (std::size_t i = next; i <= last; ++i) {
      Pass& pass = passes_.emplace_back();
      pass.stage = static_cast<std::uint32_t>(rank);
      pass.chunk = static_cast<std::uint32_t>(order[i].chunk);
      pass.kind = order[i].kind;
      pass.with_next = i < last;
      if (const std::uint32_t* needed = outputs.needed_by(rank, order[i])) {
        pass.input = *needed;
        pass.sent = passes_[*needed].stage != rank;
      }
    }
    for (std::size_t i = first; next <= last; ++next, ++i)
      if (order[next].kind != PassKind::weight_gradient) outputs.of(rank, order[next]) = static_cast<std::uint32_t>(i);
    return true;
  };
  for (bool progressed = true; progressed;) {
    progressed = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank)
      while (run_next(rank)) progressed = true;
  }
  MANYWORLDS_CHECK(passes_.size() == all, "{} of {} passes of a pipeline can run", passes_.size(), all);
  mark_ends(passes_);
}

std::vector<StagePasses> PipelinePasses::run(const std::vector<std::vector<ChunkTimes>>& chunks,
                                             Time transfer_ps) const {
  std::vector<StagePasses> stages(stages_);
  std::vector<Time> free(stages_, 0), ends(passes_.size());
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const std::size_t last = passes_[i].with_next ? i + 1 : i;
    const std::size_t rank = passes_[i].stage;
    Time begin = free[rank], length = 0, gathered = 0, blocked = 0;
    for (std::size_t k = i; k <= last; ++k) {
      const Pass& pass = passes_[k];
      const ChunkTimes& chunk = chunks[rank][pass.chunk];
      if (pass.input != kNone) begin = std::max(begin, ends[pass.input] + (pass.sent ? transfer_ps : 0));
      length += chunk.passes.of(pass.kind);
      if (pass.first) gathered = std::max(gathered, chunk.gathered_ps);
      if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) blocked += chunk.reduction_ps;
    }
    const Time end = std::max(begin + length, gathered);
    for (; i <= last; ++i) {
      const Pass& pass = passes_[i];
      ends[i] = end;
      if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient)
        stages[rank].gradients.push_back({pass.chunk, pass.last, begin, end});
    }
    i = last;
    stages[rank].drained_ps = end;
    free[rank] = end + blocked;
  }
  return stages;
}

}  // namespace manyworlds::core::step
