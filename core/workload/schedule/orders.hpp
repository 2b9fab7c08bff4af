// Building blocks of pass orders: a writer, repeated blocks, insertion of weight gradients, and DualPipe's order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// Returns the order of every rank; `order_of` returns the order of one rank.
template <typename OrderOf>
std::vector<PassOrder> orders_by_rank(const Pipeline& pipeline, OrderOf&& order_of) {
  std::vector<PassOrder> all;
  for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) all.push_back(order_of(rank));
  return all;
}

/// Writes the order of one rank. Micro-batches of a chunk are numbered separately for forward and backward passes, and
/// weight gradients are deferred in the order of their input gradients.
class OrderWriter {
 public:
  /// The first micro-batch of chunk c is `first[c]`.
  explicit OrderWriter(std::int64_t chunks, std::vector<std::int32_t> first = {})
      : next_(chunks), first_(std::move(first)) {
    first_.resize(static_cast<std::size_t>(chunks), 0);
  }

  void forward(std::int32_t chunk) { add(PassKind::forward, chunk); }
  void backward(std::int32_t chunk) { add(PassKind::backward, chunk); }
  void input_gradient(std::int32_t chunk) {
    add(PassKind::input_gradient, chunk);
    deferred_.push_back({PassKind::weight_gradient, order_.back().micro_batch, chunk});
  }
  /// Appends the weight gradient that has been deferred longest.
  void weight_gradient() { order_.push_back(deferred_.at(next_deferred_++)); }
  std::size_t deferred() const { return deferred_.size() - next_deferred_; }
  /// Makes the last two passes run together.
  void overlap_last_two() { order_.at(order_.size() - 2).overlaps_next = true; }
  std::int32_t forwards(std::int32_t chunk = 0) const { return next_[static_cast<std::size_t>(chunk)].first; }
  std::int32_t backwards(std::int32_t chunk = 0) const { return next_[static_cast<std::size_t>(chunk)].second; }
  PassOrder take() { return std::move(order_); }

 private:
  void add(PassKind kind, std::int32_t chunk) {
    auto& [forwards, backwards] = next_[static_cast<std::size_t>(chunk)];
    const std::int32_t number = kind == PassKind::forward ? forwards++ : backwards++;
    order_.push_back({kind, first_[static_cast<std::size_t>(chunk)] + number, chunk});
  }

  PassOrder order_, deferred_;
  std::size_t next_deferred_ = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> next_;
  std::vector<std::int32_t> first_;
};

/// A building block that is repeated every six units of time, once per micro-batch (Qi et al. 2024, Pipeline
/// Parallelism with Controllable Memory, section 3): the times at which a rank runs the passes of the first
/// micro-batch. Weight gradients have no fixed times; they fill the free units. No two times of a rank are equal modulo
/// six.
struct BlockTimes {
  std::int64_t forward0, forward1, backward1, backward0;  // the digit is the chunk
};
using Block = BlockTimes (*)(std::int64_t ranks, std::int64_t rank);

/// Returns forward passes and input gradients of the repeated blocks, in the order of their times.
std::vector<PassOrder> block_orders(const Pipeline& pipeline, Block block);
/// Returns the maximum number of micro-batches and chunks in flight on a rank if blocks run at their times.
std::int64_t peak_in_flight(const Pipeline& pipeline, Block block);

/// Inserts weight gradients into orders of forward passes and input gradients. A rank runs its longest deferred weight
/// gradient whenever the next pass of its order cannot run, because its input is missing or because more than
/// `max_in_flight` micro-batches and chunks would be in flight. All passes last one unit of time and transfers take
/// none.
std::vector<PassOrder> insert_weight_gradients(const Pipeline& pipeline, StagePlacement stage_placement,
                                               const std::vector<PassOrder>& orders, std::int64_t max_in_flight);

/// Returns DualPipe's order (deepseek-ai/DualPipe, step()) for position `rank` of `ranks`, counted from where the two
/// chunks are farthest apart. `near` is the chunk that begins, and `first` the first micro-batch of each chunk.
PassOrder dualpipe_order(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches, std::int32_t near,
                         std::vector<std::int32_t> first);

}  // namespace manyworlds::core::workload
