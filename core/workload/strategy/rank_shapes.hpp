// The dimensions of a model on one rank, after tensor, sequence and context parallelism.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

struct RankShapes {
  std::int64_t tensor_parallel = 1;     // ranks that a layer is sharded over
  bool sequence_parallel = false;       // these ranks also split the tokens between tensor-parallel regions
  bool overlap_tensor = false;          // see Stack
  std::int64_t tensor_chunks = 0;       // see Stack
  bool overlap_input_gradient = false;  // see Stack
  Stack stack;                          // decides which kernels are fused
  std::int64_t samples = 0;             // per micro-batch
  std::int64_t sequence = 0;            // tokens of a sample on this rank: a context-parallel share
  std::int64_t keys = 0;                // keys of a sample that attention reads: all tokens
  std::int64_t pairs = 0;               // (query, key) pairs of one head and sample within causal mask and window
  std::int64_t window = 0;              // keys that a query sees at most; 0: all
  bool cut_by_mask = true;              // whether the mask cuts tiles of attention
  std::int64_t tokens = 0;              // per micro-batch
  std::int64_t sp_region_tokens = 0;  // tokens on this rank outside tensor-parallel regions: norms, residuals, dropout
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;   // width of a query or key
  std::int64_t value_dim = 0;  // width of a value
  std::int64_t heads = 0;      // on this rank, as are kv_heads, ffn and shared_ffn
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t shared_ffn = 0;  // width of the shared expert
  std::int64_t experts = 0;     // on this rank
  std::int64_t expert_ffn = 0;  // width of one expert on this rank
  std::int64_t vocabulary = 0;  // padded, and sharded

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t value_width() const { return heads * value_dim; }
  std::int64_t qkv_width() const { return (heads + kv_heads) * head_dim + kv_heads * value_dim; }
  std::int64_t logits() const { return tokens * vocabulary; }
  /// bf16 bytes of one micro-batch's hidden states: all of them, and those that this rank has between layers.
  std::int64_t hidden_bytes() const { return 2 * tokens * hidden; }
  std::int64_t boundary_bytes() const { return 2 * sp_region_tokens * hidden; }
  /// Whether the tensor ranks of a stage share out a pipeline transfer of theirs.
  bool scatters_transfers() const { return stack.scatter_transfers && tensor_parallel > 1 && !sequence_parallel; }
  /// Returns what one of them sends.
  std::int64_t transfer_bytes() const {
    return scatters_transfers() ? (boundary_bytes() + tensor_parallel - 1) / tensor_parallel : boundary_bytes();
  }
};

/// Returns the shapes of one rank: in a layer of `kind`, or in embedding and head. A model with an architecture has
/// those of the residual stream and the vocabulary; its parts add theirs. Throws InternalError if sizes do not divide;
/// the validity rules of experiments exclude that.
RankShapes rank_shapes(const Model& model, const Strategy& strategy, LayerKind kind = {});

/// Returns the ranks that the weights of a part of workload::data_part (0: any other) are sharded over.
std::int64_t weight_ranks(const Strategy& strategy, Modules part);
/// Returns the strategy as a part of workload::data_part sees it (0: any other). If tensor-parallel ranks share it out
/// by samples, each is a replica of data parallelism with its share of a micro-batch.
Strategy strategy_of_part(const Strategy& strategy, Modules part);

/// Returns the shapes of the residual stream: tokens and hidden states.
RankShapes stream_shapes(const Model& model, const Strategy& strategy);
/// Adds heads and pairs of attention, those of a window if `kind` has it.
void add_attention_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy, LayerKind kind);
/// Adds the width of the feed-forward network.
void add_feed_forward_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy);
/// Adds the number and widths of the experts.
void add_expert_shapes(RankShapes& shapes, const Model& model, const Strategy& strategy);

/// Returns the vocabulary rounded up to a multiple of 128 x tp, as Megatron-LM pads it.
std::int64_t padded_vocabulary(const Model& model, std::int64_t tp);

/// Layers of each virtual stage, in model order, and the stage that has the head.
struct SplitByCost {
  std::vector<std::int64_t> layers;
  std::int64_t head_stage = 0;
};
/// Deals out layers and head in order: a stage is full once all blocks so far exceed its share of the costs, which are
/// the weights of their GEMMs, with keys and values for every head (nanotron, models/base.py, build_model(), and
/// models/llama.py, get_block_compute_costs()). nanotron leaves stages behind the head's to the loss.
SplitByCost split_by_cost(const Model& model, std::int64_t stages);

/// Returns how many layers precede virtual stage `virtual_stage`, in forward order, as stage_layers or split
/// distribute them.
std::int64_t layers_before_virtual_stage(const Model& model, const Strategy& strategy, std::int64_t virtual_stage);

/// Returns the layers of chunk `chunk` of pipeline rank `stage`, in forward order; those of multi-token prediction too.
std::vector<LayerKind> chunk_layers(const Model& model, const Strategy& strategy, std::int64_t stage,
                                    std::int64_t chunk);

}  // namespace manyworlds::core::workload
