// What schedules are made of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// The order of each rank, told by `of`, a function of the rank.
template <typename Of>
std::vector<Schedule> of_each_rank(const Pipeline& pipeline, Of&& of) {
  std::vector<Schedule> all;
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) all.push_back(of(rank));
  return all;
}

/// A rank's order as it is written: micro-batches of a chunk are counted kind by kind, and gradients of weights wait in
/// the order in which their passes came.
class OrderWriter {
 public:
  /// Of chunk c the first micro-batch is `first[c]`.
  explicit OrderWriter(std::int64_t chunks, std::vector<std::int32_t> first = {})
      : next_(chunks), first_(std::move(first)) {
    first_.resize(static_cast<std::size_t>(chunks), 0);
  }

  void forward(std::int32_t chunk) { add(PassKind::forward, chunk); }
  void backward(std::int32_t chunk) { add(PassKind::backward, chunk); }
  void input_gradient(std::int32_t chunk) {
    add(PassKind::input_gradient, chunk);
    waiting_.push_back({PassKind::weight_gradient, order_.back().micro_batch, chunk});
  }
  /// Of the pass that has waited longest.
  void weight_gradient() { order_.push_back(waiting_.at(gone_++)); }
  std::size_t waiting() const { return waiting_.size() - gone_; }
  /// The last two passes run together.
  void together() { order_.at(order_.size() - 2).beside_next = true; }
  std::int32_t forwards(std::int32_t chunk = 0) const { return next_[static_cast<std::size_t>(chunk)].first; }
  std::int32_t backwards(std::int32_t chunk = 0) const { return next_[static_cast<std::size_t>(chunk)].second; }
  Schedule take() { return std::move(order_); }

 private:
  void add(PassKind kind, std::int32_t chunk) {
    auto& [forwards, backwards] = next_[static_cast<std::size_t>(chunk)];
    const std::int32_t number = kind == PassKind::forward ? forwards++ : backwards++;
    order_.push_back({kind, first_[static_cast<std::size_t>(chunk)] + number, chunk});
  }

  Schedule order_, waiting_;
  std::size_t gone_ = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> next_;
  std::vector<std::int32_t> first_;
};

/// A building block that is repeated every six units of time, micro-batch by micro-batch (Qi et al. 2024, Pipeline
/// Parallelism with Controllable Memory, section 3): when a rank runs the passes of the first micro-batch, gradients of
/// weights apart, which take the units that are left free. No two times of a rank are equal modulo six.
struct BlockTimes {
  std::int64_t forward0, forward1, backward1, backward0;  // chunk 0 and 1
};
using Block = BlockTimes (*)(std::int64_t ranks, std::int64_t rank);

/// Forward passes and input gradients of repeated blocks, in the order of their times.
std::vector<Schedule> block_orders(const Pipeline& pipeline, Block block);
/// The most micro-batches and chunks alive on a rank while blocks run at their times.
std::int64_t most_alive_in(const Pipeline& pipeline, Block block);

/// Puts gradients of weights into orders of forward passes and input gradients: a rank takes the one that has waited
/// longest while what is next in its order cannot run, for want of its input or of memory for one more than
/// `most_alive` micro-batches and chunks; all passes last one unit, transfers nothing.
std::vector<Schedule> fill_with_weights(const Pipeline& pipeline, Folding folding, const std::vector<Schedule>& orders,
                                        std::int64_t most_alive);

/// DualPipe's order (deepseek-ai/DualPipe, step()) of the place `rank` of `ranks`, counted from where the two chunks
/// are farthest apart. `near` is the chunk that begins, and `first` the first micro-batch of each chunk.
Schedule dual_order(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches, std::int32_t near,
                    std::vector<std::int32_t> first);

}  // namespace manyworlds::core::workload
