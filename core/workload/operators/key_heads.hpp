// Fewer heads of keys and values than tensor-parallel ranks: grouped-query and multi-query attention over many ranks.
// Each rank multiplies its share of the columns of queries, keys and values, which is less than a head of these; all
// ranks gather them, and each takes its heads of queries and a whole head of keys and one of values, which other ranks
// have too (Megatron-LM, core/transformer/attention.py, get_query_key_value_tensors(), num_query_groups < world_size).
#pragma once

#include <cstdint>
#include <string>

#include "core/workload/model/layer_part.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Returns the heads of keys and values of a part as a size that ranks divide.
ShardedSize heads_of_keys(const Model& model);

/// What a LayerPart is, besides, whose tensor-parallel ranks may outnumber its heads of keys.
class SharesKeyHeads {
 public:
  SharesKeyHeads() = default;
  SharesKeyHeads(const SharesKeyHeads&) = delete;
  SharesKeyHeads& operator=(const SharesKeyHeads&) = delete;
  virtual ~SharesKeyHeads() = default;

  /// Returns why the heads of keys of a model can be given neither out to `ranks`, over which the strategy shards the
  /// part, nor to several of them each, "kv_heads 3, tp 8"; empty if they can.
  virtual std::string unshared_key_heads(const Model& model, const Strategy& strategy, std::int64_t ranks) const = 0;
};

/// The same for multi-head attention without a gate.
std::string unshared_key_heads(const Model& model, const Strategy& strategy, std::int64_t ranks);

/// Returns the numbers of a token of which each of these ranks has a share before they gather them: those of all heads
/// of queries, keys and values. 0 if no head is shared.
std::int64_t gathered_head_width(const Model& model, const RankShapes& shapes);

/// Gathers what the columns of queries, keys and values give, `width` numbers a token, and takes the rank's heads of
/// them. What is gathered along the last dimension is put side by side by a copy (4 bytes a number); backward the
/// gradients of the rank's group of heads are padded with zeros to all (2 bytes for each number of the group and of
/// all), copied and reduce-scattered (core/tensor_parallel/mappings.py).
Operator gather_heads(const Model& model, const RankShapes& shapes, std::int64_t width);

/// Returns the bytes of what is gathered, in parts and side by side, while the rank's heads are taken.
std::int64_t gathered_head_bytes(const RankShapes& shapes, std::int64_t width);

}  // namespace manyworlds::core::workload
