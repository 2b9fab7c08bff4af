// ZB-1p and ZB-2p (Qi et al. 2024, section 3): orders made for what passes cost and for the memory of p, or 2p, whole
// micro-batches. Our own greedy rule in the place of theirs: a rank that is free takes a backward pass, else a forward
// pass that fits, else the gradients of weights that have waited longest, unless something better is there within a
// share of their time; of three such shares the one with the shortest step is kept.
#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

#include "core/base/error.hpp"
#include "core/workload/schedule/orders.hpp"

namespace manyworlds::core::workload {
namespace {

class Run {
 public:
  Run(const Pipeline& pipeline, std::int64_t memory, std::int64_t patience_percent)
      : pipeline_(pipeline),
        memory_(memory),
        patience_percent_(patience_percent),
        ranks_(static_cast<std::size_t>(pipeline.ranks)) {
    for (Rank& rank : ranks_) rank.forward_ends.reserve(count()), rank.backward_ends.reserve(count());
  }

  void play() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) wake_.emplace(0, rank);
    while (!wake_.empty()) {
      const auto [at, rank] = wake_.top();
      wake_.pop();
      if (ranks_[rank].free <= at) go_on(rank, at);
    }
    for (const Rank& rank : ranks_) MANYWORLDS_CHECK(rank.weights == count(), "a rank stands still");
  }

  /// The longest time of a rank from its first pass to its last.
  Time lasts() const {
    Time most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.free - rank.began);
    return most;
  }
  std::vector<Schedule> orders() {
    std::vector<Schedule> all;
    for (Rank& rank : ranks_) all.push_back(rank.order.take());
    return all;
  }

 private:
  struct Rank {
    OrderWriter order{1};
    std::vector<Time> forward_ends, backward_ends;  // by micro-batch
    std::size_t weights = 0;                        // done
    std::int64_t held = 0;                          // bytes
    Time began = -1, free = 0;
  };

  std::size_t count() const { return static_cast<std::size_t>(pipeline_.micro_batches); }

  /// When the input of a pass is there; nothing while that is not known.
  std::optional<Time> forward_ready(std::size_t rank) const {
    const std::size_t next = ranks_[rank].forward_ends.size();
    if (next == count()) return std::nullopt;
    if (rank == 0) return 0;
    const Rank& before = ranks_[rank - 1];
    if (next >= before.forward_ends.size()) return std::nullopt;
    return before.forward_ends[next];
  }
  std::optional<Time> backward_ready(std::size_t rank) const {
    const Rank& is = ranks_[rank];
    const std::size_t next = is.backward_ends.size();
    if (next == is.forward_ends.size()) return std::nullopt;
    if (rank + 1 == ranks_.size()) return is.forward_ends[next];
    const Rank& after = ranks_[rank + 1];
    if (next >= after.backward_ends.size()) return std::nullopt;
    return after.backward_ends[next];
  }

  void go_on(std::size_t rank, Time at) {
    Rank& is = ranks_[rank];
    const PassCosts& cost = pipeline_.costs;
    const std::optional<Time> backward = backward_ready(rank);
    std::optional<Time> forward = forward_ready(rank);
    if (is.held + cost.kept_bytes > memory_ * cost.kept_bytes) forward.reset();
    if (backward && *backward <= at) {
      is.order.input_gradient(0);
      is.held -= cost.kept_bytes - cost.held_bytes;
      is.backward_ends.push_back(end(rank, at, cost.input_gradient_ps));
      if (rank > 0) wake_.emplace(is.free, rank - 1);
    } else if (forward && *forward <= at) {
      if (is.began < 0) is.began = at;
      is.order.forward(0);
      is.held += cost.kept_bytes;
      is.forward_ends.push_back(end(rank, at, cost.forward_ps));
      if (rank + 1 < ranks_.size()) wake_.emplace(is.free, rank + 1);
    } else if (is.weights < is.backward_ends.size()) {
      const Time soon = std::min(backward.value_or(kNever), forward.value_or(kNever));
      if (soon < at + cost.weight_gradient_ps * patience_percent_ / 100) return wake_.emplace(soon, rank), void();
      is.order.weight_gradient();
      ++is.weights;
      is.held -= cost.held_bytes;
      end(rank, at, cost.weight_gradient_ps);
    } else if (backward || forward) {
      wake_.emplace(std::min(backward.value_or(kNever), forward.value_or(kNever)), rank);
    }
  }

  Time end(std::size_t rank, Time at, Time lasts) {
    ranks_[rank].free = at + lasts;
    wake_.emplace(at + lasts, rank);
    return at + lasts;
  }

  const Pipeline& pipeline_;
  const std::int64_t memory_, patience_percent_;
  std::vector<Rank> ranks_;
  using Wake = std::pair<Time, std::size_t>;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wake_;
};

std::vector<Schedule> orders(const Pipeline& pipeline, std::int64_t times_ranks) {
  std::vector<Schedule> best;
  Time shortest = kNever;
  for (const std::int64_t patience_percent : {0, 50, 100}) {
    Run run(pipeline, times_ranks * pipeline.ranks, patience_percent);
    run.play();
    if (run.lasts() >= shortest) continue;
    shortest = run.lasts();
    best = run.orders();
  }
  return best;
}

}  // namespace

ScheduleType zb_1p_schedule() {
  return {.name = "zb_1p",
          .help = "zero bubble, made for what passes cost, in the memory of pp micro-batches",
          .orders = [](const Pipeline& pipeline) { return orders(pipeline, 1); },
          .asks_costs = true};
}

ScheduleType zb_2p_schedule() {
  return {.name = "zb_2p",
          .help = "zero bubble, made for what passes cost, in the memory of 2 pp micro-batches",
          .orders = [](const Pipeline& pipeline) { return orders(pipeline, 2); },
          .asks_costs = true};
}

}  // namespace manyworlds::core::workload
