// Pass orders of repeated building blocks, insertion of weight gradients, and DualPipe's order.
#include "core/workload/schedule/orders.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/workload/schedule/stage_map.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kInterval = 6;  // forward pass, input gradient and weight gradient of two chunks

struct TimedPass {
  std::int64_t at;
  PipelinePass pass;
};

/// Returns the passes of repeated blocks on one rank, except weight gradients, ordered by time.
std::vector<TimedPass> timed_order(const Pipeline& pipeline, Block block, std::int64_t rank) {
  const BlockTimes times = block(pipeline.ranks, rank);
  const std::pair<std::int64_t, PipelinePass> passes[] = {{times.forward0, {PassKind::forward, 0, 0}},
                                                          {times.forward1, {PassKind::forward, 0, 1}},
                                                          {times.backward1, {PassKind::input_gradient, 0, 1}},
                                                          {times.backward0, {PassKind::input_gradient, 0, 0}}};
  std::vector<TimedPass> order;
  for (std::int32_t i = 0; i < pipeline.micro_batches; ++i)
    for (auto [at, pass] : passes) {
      pass.micro_batch = i;
      order.push_back({at + kInterval * i, pass});
    }
  std::sort(order.begin(), order.end(), [](const TimedPass& a, const TimedPass& b) { return a.at < b.at; });
  for (std::size_t i = 1; i < order.size(); ++i)
    MANYWORLDS_CHECK(order[i - 1].at < order[i].at, "rank {} runs two passes at {}", rank, order[i].at);
  return order;
}

/// Simulation of a pipeline in which every pass takes one unit of time; it inserts weight gradients into the orders.
class WeightGradientInserter {
 public:
  WeightGradientInserter(const Pipeline& pipeline, StagePlacement stage_placement, const std::vector<PassOrder>& orders,
                         std::int64_t max_in_flight)
      : stage_map_(stage_placement, pipeline.ranks, pipeline.chunks), orders_(orders), max_in_flight_(max_in_flight) {
    ranks_.resize(orders.size());
    done_.resize(2 * static_cast<std::size_t>(pipeline.micro_batches * stage_map_.count()));
  }

  std::vector<PassOrder> run() {
    std::vector<std::pair<std::size_t, PipelinePass>> running;  // passes that ranks run in this unit
    for (bool unfinished = true; unfinished;) {
      unfinished = false;
      running.clear();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const Rank& state = ranks_[rank];
        unfinished |= state.next < orders_[rank].size() || state.deferred() > 0;
        if (const PipelinePass* pass = choose(rank)) running.emplace_back(rank, *pass);
      }
      MANYWORLDS_CHECK(!unfinished || !running.empty(), "no rank can continue with {} in flight", max_in_flight_);
      for (const auto& [rank, pass] : running) take(rank, pass);
    }
    std::vector<PassOrder> orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  struct Rank {
    PassOrder order, weights;
    std::size_t next = 0, weights_done = 0;
    std::int64_t in_flight = 0;
    std::size_t deferred() const { return weights.size() - weights_done; }
  };

  const PipelinePass* choose(std::size_t rank) const {
    const Rank& state = ranks_[rank];
    const PipelinePass* next = state.next < orders_[rank].size() ? &orders_[rank][state.next] : nullptr;
    const bool fits = next != nullptr && (!next->forward() || state.in_flight < max_in_flight_);
    if (fits && ready(rank, *next)) return next;
    return state.deferred() > 0 ? &state.weights[state.weights_done] : nullptr;
  }

  std::size_t output_index(std::int64_t virtual_stage, const PipelinePass& pass, bool forward) const {
    return static_cast<std::size_t>(2 * (pass.micro_batch * stage_map_.count() + virtual_stage) + (forward ? 0 : 1));
  }
  bool ready(std::size_t rank, const PipelinePass& pass) const {
    const std::int64_t virtual_stage = stage_map_.of(static_cast<std::int64_t>(rank), pass.chunk);
    if (pass.forward()) return virtual_stage == 0 || done_[output_index(virtual_stage - 1, pass, true)];
    const bool last = virtual_stage + 1 == stage_map_.count();
    return done_[last ? output_index(virtual_stage, pass, true) : output_index(virtual_stage + 1, pass, false)];
  }

  void take(std::size_t rank, const PipelinePass& pass) {
    Rank& state = ranks_[rank];
    state.order.push_back(pass);
    if (pass.kind == PassKind::weight_gradient) {
      ++state.weights_done;
      --state.in_flight;
      return;
    }
    ++state.next;
    done_[output_index(stage_map_.of(static_cast<std::int64_t>(rank), pass.chunk), pass, pass.forward())] = true;
    if (pass.forward())
      ++state.in_flight;
    else
      state.weights.push_back({PassKind::weight_gradient, pass.micro_batch, pass.chunk});
  }

  const StageMap stage_map_;
  const std::vector<PassOrder>& orders_;
  const std::int64_t max_in_flight_;
  std::vector<Rank> ranks_;
  std::vector<bool> done_;  // by micro-batch, virtual stage and direction
};

}  // namespace

std::vector<PassOrder> block_orders(const Pipeline& pipeline, Block block) {
  return orders_by_rank(pipeline, [&](std::int64_t rank) {
    PassOrder order;
    for (const TimedPass& timed : timed_order(pipeline, block, rank)) order.push_back(timed.pass);
    return order;
  });
}

std::int64_t peak_in_flight(const Pipeline& pipeline, Block block) {
  std::int64_t peak = 0;
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    std::int64_t in_flight = 0, deferred = 0, free = 0;  // `free` is the first unit after the last pass
    for (const TimedPass& timed : timed_order(pipeline, block, rank)) {
      const std::int64_t ended = std::min(deferred, timed.at - free);
      deferred -= ended;
      in_flight -= ended;
      timed.pass.forward() ? ++in_flight : ++deferred;
      peak = std::max(peak, in_flight);
      free = timed.at + 1;
    }
  }
  return peak;
}

std::vector<PassOrder> insert_weight_gradients(const Pipeline& pipeline, StagePlacement stage_placement,
                                               const std::vector<PassOrder>& orders, std::int64_t max_in_flight) {
  return WeightGradientInserter(pipeline, stage_placement, orders, max_in_flight).run();
}

PassOrder dualpipe_order(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches, std::int32_t near,
                         std::vector<std::int32_t> first) {
  OrderWriter order(2, std::move(first));
  const std::int32_t far = 1 - near;
  const std::int64_t inner = ranks - rank - 1;
  const auto pair = [&](std::int32_t forward, std::int32_t backward) {
    order.forward(forward);
    order.backward(backward);
    order.overlap_last_two();
  };
  for (std::int64_t i = 0; i < 2 * inner; ++i) order.forward(near);
  for (std::int64_t i = 0; i <= rank; ++i) order.forward(near), order.forward(far);
  for (std::int64_t i = 0; i < inner; ++i) order.input_gradient(far), order.weight_gradient(), order.forward(far);
  for (std::int64_t i = 0; i < micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && inner == 0)  // a separate first pair makes the bubble smaller
      order.forward(near), order.backward(far);
    else
      pair(near, far);
    pair(far, near);
  }
  for (std::int64_t i = 0; i < inner; ++i) order.backward(far), pair(far, near);
  // The second half of the last 2 (rank + 1) backward passes defers its weight gradients to the end.
  for (std::int64_t i = 0; i < 2 * (rank + 1); ++i) {
    const std::int32_t chunk = i % 2 == 0 ? far : near;
    i < rank + 1 ? order.backward(chunk) : order.input_gradient(chunk);
  }
  for (std::int64_t i = 0; i < inner; ++i) order.weight_gradient(), order.input_gradient(near);
  while (order.deferred() > 0) order.weight_gradient();
  return order.take();
}

}  // namespace manyworlds::core::workload
