// Building blocks repeated, and the places of gradients of weights.
#include "core/workload/schedule/orders.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/workload/schedule/sections.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kInterval = 6;  // forward, backward and weights of two chunks

struct Timed {
  std::int64_t at;
  Slot slot;
};

/// What a rank runs of repeated blocks but for gradients of weights, by time.
std::vector<Timed> timed_order(const Pipeline& pipeline, Block block, std::int64_t rank) {
  const BlockTimes times = block(pipeline.ranks, rank);
  const std::pair<std::int64_t, Slot> passes[] = {{times.forward0, {PassKind::forward, 0, 0}},
                                                  {times.forward1, {PassKind::forward, 0, 1}},
                                                  {times.backward1, {PassKind::input_gradient, 0, 1}},
                                                  {times.backward0, {PassKind::input_gradient, 0, 0}}};
  std::vector<Timed> order;
  for (std::int32_t i = 0; i < pipeline.micro_batches; ++i)
    for (auto [at, slot] : passes) {
      slot.micro_batch = i;
      order.push_back({at + kInterval * i, slot});
    }
  std::sort(order.begin(), order.end(), [](const Timed& a, const Timed& b) { return a.at < b.at; });
  for (std::size_t i = 1; i < order.size(); ++i)
    MANYWORLDS_CHECK(order[i - 1].at < order[i].at, "rank {} runs two passes at {}", rank, order[i].at);
  return order;
}

/// The passes of a pipeline while they run, a unit of time each.
class Filling {
 public:
  Filling(const Pipeline& pipeline, Folding folding, const std::vector<Schedule>& orders, std::int64_t most_alive)
      : sections_(folding, pipeline.ranks, pipeline.chunks), orders_(orders), most_alive_(most_alive) {
    ranks_.resize(orders.size());
    done_.resize(2 * static_cast<std::size_t>(pipeline.micro_batches * sections_.count()));
  }

  std::vector<Schedule> run() {
    std::vector<std::pair<std::size_t, Slot>> now;  // what ranks run in this unit
    for (bool left = true; left;) {
      left = false;
      now.clear();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const Rank& is = ranks_[rank];
        left |= is.next < orders_[rank].size() || is.waiting() > 0;
        if (const Slot* slot = choose(rank)) now.emplace_back(rank, *slot);
      }
      MANYWORLDS_CHECK(!left || !now.empty(), "no rank can go on with {} alive", most_alive_);
      for (const auto& [rank, slot] : now) take(rank, slot);
    }
    std::vector<Schedule> made;
    for (Rank& rank : ranks_) made.push_back(std::move(rank.order));
    return made;
  }

 private:
  struct Rank {
    Schedule order, weights;
    std::size_t next = 0, weights_done = 0;
    std::int64_t alive = 0;
    std::size_t waiting() const { return weights.size() - weights_done; }
  };

  const Slot* choose(std::size_t rank) const {
    const Rank& is = ranks_[rank];
    const Slot* next = is.next < orders_[rank].size() ? &orders_[rank][is.next] : nullptr;
    const bool fits = next != nullptr && (!next->forward() || is.alive < most_alive_);
    if (fits && ready(rank, *next)) return next;
    return is.waiting() > 0 ? &is.weights[is.weights_done] : nullptr;
  }

  std::size_t number(std::int64_t section, const Slot& slot, bool forward) const {
    return static_cast<std::size_t>(2 * (slot.micro_batch * sections_.count() + section) + (forward ? 0 : 1));
  }
  bool ready(std::size_t rank, const Slot& slot) const {
    const std::int64_t section = sections_.of(static_cast<std::int64_t>(rank), slot.chunk);
    if (slot.forward()) return section == 0 || done_[number(section - 1, slot, true)];
    const bool last = section + 1 == sections_.count();
    return done_[last ? number(section, slot, true) : number(section + 1, slot, false)];
  }

  void take(std::size_t rank, const Slot& slot) {
    Rank& is = ranks_[rank];
    is.order.push_back(slot);
    if (slot.kind == PassKind::weight_gradient) {
      ++is.weights_done;
      --is.alive;
      return;
    }
    ++is.next;
    done_[number(sections_.of(static_cast<std::int64_t>(rank), slot.chunk), slot, slot.forward())] = true;
    if (slot.forward())
      ++is.alive;
    else
      is.weights.push_back({PassKind::weight_gradient, slot.micro_batch, slot.chunk});
  }

  const Sections sections_;
  const std::vector<Schedule>& orders_;
  const std::int64_t most_alive_;
  std::vector<Rank> ranks_;
  std::vector<bool> done_;  // by micro-batch, section and direction
};

}  // namespace

std::vector<Schedule> block_orders(const Pipeline& pipeline, Block block) {
  return of_each_rank(pipeline, [&](std::int64_t rank) {
    Schedule order;
    for (const Timed& timed : timed_order(pipeline, block, rank)) order.push_back(timed.slot);
    return order;
  });
}

std::int64_t most_alive_in(const Pipeline& pipeline, Block block) {
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
    std::int64_t alive = 0, waiting = 0, free = 0;  // `free`: the first unit after the last pass
    for (const Timed& timed : timed_order(pipeline, block, rank)) {
      const std::int64_t ended = std::min(waiting, timed.at - free);
      waiting -= ended;
      alive -= ended;
      timed.slot.forward() ? ++alive : ++waiting;
      most = std::max(most, alive);
      free = timed.at + 1;
    }
  }
  return most;
}

std::vector<Schedule> fill_with_weights(const Pipeline& pipeline, Folding folding, const std::vector<Schedule>& orders,
                                        std::int64_t most_alive) {
  return Filling(pipeline, folding, orders, most_alive).run();
}

Schedule dual_order(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches, std::int32_t near,
                    std::vector<std::int32_t> first) {
  OrderWriter order(2, std::move(first));
  const std::int32_t far = 1 - near;
  const std::int64_t inner = ranks - rank - 1;
  const auto pair = [&](std::int32_t forward, std::int32_t backward) {
    order.forward(forward);
    order.backward(backward);
    order.together();
  };
  for (std::int64_t i = 0; i < 2 * inner; ++i) order.forward(near);
  for (std::int64_t i = 0; i <= rank; ++i) order.forward(near), order.forward(far);
  for (std::int64_t i = 0; i < inner; ++i) order.input_gradient(far), order.weight_gradient(), order.forward(far);
  for (std::int64_t i = 0; i < micro_batches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && inner == 0)  // not together, for a smaller bubble
      order.forward(near), order.backward(far);
    else
      pair(near, far);
    pair(far, near);
  }
  for (std::int64_t i = 0; i < inner; ++i) order.backward(far), pair(far, near);
  // Of the last 2 (rank + 1) backward passes the second half leave gradients of weights for the end.
  for (std::int64_t i = 0; i < 2 * (rank + 1); ++i) {
    const std::int32_t chunk = i % 2 == 0 ? far : near;
    i < rank + 1 ? order.backward(chunk) : order.input_gradient(chunk);
  }
  for (std::int64_t i = 0; i < inner; ++i) order.weight_gradient(), order.input_gradient(near);
  while (order.waiting() > 0) order.weight_gradient();
  return order.take();
}

}  // namespace manyworlds::core::workload
