// ZB-1p and ZB-2p (Qi et al. 2024, section 3): orders built from the costs of passes, for the memory of p, or 2p, whole
// micro-batches. A greedy rule of our own replaces the paper's: an idle rank runs a backward pass, else a forward pass
// that fits into memory, else its longest deferred weight gradient, unless a better pass becomes ready within a given
// share of that gradient's duration. Three such shares are tried, and the order with the shortest step is kept.
#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

#include "core/base/error.hpp"
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

class GreedyScheduler {
 public:
  GreedyScheduler(const Pipeline& pipeline, std::int64_t memory_micro_batches, std::int64_t patience_percent)
      : pipeline_(pipeline),
        memory_micro_batches_(memory_micro_batches),
        patience_percent_(patience_percent),
        ranks_(static_cast<std::size_t>(pipeline.ranks)) {
    for (Rank& rank : ranks_) rank.forward_ends.reserve(count()), rank.backward_ends.reserve(count());
  }

  void simulate() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) wake_.emplace(0, rank);
    while (!wake_.empty()) {
      const auto [at, rank] = wake_.top();
      wake_.pop();
      if (ranks_[rank].free <= at) advance(rank, at);
    }
    for (const Rank& rank : ranks_) MANYWORLDS_CHECK(rank.weight_gradients_done == count(), "a rank is deadlocked");
  }

  /// Returns the longest time of a rank, from the start of its first pass to the end of its last.
  Time duration() const {
    Time longest = 0;
    for (const Rank& rank : ranks_) longest = std::max(longest, rank.free - rank.began);
    return longest;
  }
  std::vector<PassOrder> orders() {
    std::vector<PassOrder> all;
    for (Rank& rank : ranks_) all.push_back(rank.order.take());
    return all;
  }

 private:
  struct Rank {
    OrderWriter order{1};
    std::vector<Time> forward_ends, backward_ends;  // by micro-batch
    std::size_t weight_gradients_done = 0;          // weight gradients that are done
    std::int64_t live_bytes = 0;                    // bytes of saved activations
    Time began = -1, free = 0;
  };

  std::size_t count() const { return static_cast<std::size_t>(pipeline_.micro_batches); }

  /// Returns when the input of the rank's next pass is available; nothing while that is unknown.
  std::optional<Time> forward_ready(std::size_t rank) const {
    const std::size_t next = ranks_[rank].forward_ends.size();
    if (next == count()) return std::nullopt;
    if (rank == 0) return 0;
    const Rank& before = ranks_[rank - 1];
    if (next >= before.forward_ends.size()) return std::nullopt;
    return before.forward_ends[next];
  }
  std::optional<Time> backward_ready(std::size_t rank) const {
    const Rank& state = ranks_[rank];
    const std::size_t next = state.backward_ends.size();
    if (next == state.forward_ends.size()) return std::nullopt;
    if (rank + 1 == ranks_.size()) return state.forward_ends[next];
    const Rank& after = ranks_[rank + 1];
    if (next >= after.backward_ends.size()) return std::nullopt;
    return after.backward_ends[next];
  }

  void advance(std::size_t rank, Time at) {
    Rank& state = ranks_[rank];
    const PassCosts& cost = pipeline_.costs;
    const std::optional<Time> backward = backward_ready(rank);
    std::optional<Time> forward = forward_ready(rank);
    if (state.live_bytes + cost.saved_bytes > memory_micro_batches_ * cost.saved_bytes) forward.reset();
    if (backward && *backward <= at) {
      state.order.input_gradient(0);
      state.live_bytes -= cost.saved_bytes - cost.weight_gradient_input_bytes;
      state.backward_ends.push_back(end(rank, at, cost.input_gradient_ps));
      if (rank > 0) wake_.emplace(state.free, rank - 1);
    } else if (forward && *forward <= at) {
      if (state.began < 0) state.began = at;
      state.order.forward(0);
      state.live_bytes += cost.saved_bytes;
      state.forward_ends.push_back(end(rank, at, cost.forward_ps));
      if (rank + 1 < ranks_.size()) wake_.emplace(state.free, rank + 1);
    } else if (state.weight_gradients_done < state.backward_ends.size()) {
      const Time next_ready = std::min(backward.value_or(kNever), forward.value_or(kNever));
      if (next_ready < at + cost.weight_gradient_ps * patience_percent_ / 100)
        return wake_.emplace(next_ready, rank), void();
      state.order.weight_gradient();
      ++state.weight_gradients_done;
      state.live_bytes -= cost.weight_gradient_input_bytes;
      end(rank, at, cost.weight_gradient_ps);
    } else if (backward || forward) {
      wake_.emplace(std::min(backward.value_or(kNever), forward.value_or(kNever)), rank);
    }
  }

  Time end(std::size_t rank, Time at, Time duration) {
    ranks_[rank].free = at + duration;
    wake_.emplace(at + duration, rank);
    return at + duration;
  }

  const Pipeline& pipeline_;
  const std::int64_t memory_micro_batches_, patience_percent_;
  std::vector<Rank> ranks_;
  using Wake = std::pair<Time, std::size_t>;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wake_;
};

std::vector<PassOrder> orders(const Pipeline& pipeline, std::int64_t memory_factor) {
  std::vector<PassOrder> best;
  Time shortest = kNever;
  for (const std::int64_t patience_percent : {0, 50, 100}) {
    GreedyScheduler scheduler(pipeline, memory_factor * pipeline.ranks, patience_percent);
    scheduler.simulate();
    if (scheduler.duration() >= shortest) continue;
    shortest = scheduler.duration();
    best = scheduler.orders();
  }
  return best;
}

}  // namespace

ScheduleType zb_1p_schedule() {
  return {.name = "zb_1p",
          .help = "zero bubble, built from the costs of passes, within the memory of pp micro-batches",
          .orders = [](const Pipeline& pipeline) { return orders(pipeline, 1); },
          .needs_costs = true};
}

ScheduleType zb_2p_schedule() {
  return {.name = "zb_2p",
          .help = "zero bubble, built from the costs of passes, within the memory of 2 pp micro-batches",
          .orders = [](const Pipeline& pipeline) { return orders(pipeline, 2); },
          .needs_costs = true};
}

}  // namespace manyworlds::core::workload
