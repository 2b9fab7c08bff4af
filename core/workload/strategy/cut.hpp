// The dimensions that one rank sees of a model: what tensor, sequence and context parallelism leave of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

struct Cut {
  std::int64_t tensor = 1;              // ranks a layer is cut over
  bool sequence_parallel = false;       // and they split the tokens between tensor-parallel regions
  bool overlap_tensor = false;          // see Stack
  std::int64_t tensor_chunks = 0;       // see Stack
  bool overlap_input_gradient = false;  // see Stack
  Stack stack;                          // which kernels are fused
  std::int64_t samples = 0;             // of a micro-batch
  std::int64_t sequence = 0;            // tokens of a sample, of which a context-parallel rank has its share
  std::int64_t keys = 0;                // tokens of a sample that attention looks at: all of them
  std::int64_t pairs = 0;               // of a query and a key of one head and sample that causal mask and window leave
  std::int64_t tokens = 0;              // of a micro-batch
  std::int64_t region_tokens = 0;  // tokens on this rank outside tensor-parallel regions: norms, residuals, dropout
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;   // of queries and keys
  std::int64_t value_dim = 0;  // of values
  std::int64_t heads = 0;      // on this rank, as are the next three
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t shared_ffn = 0;  // of the shared expert
  std::int64_t experts = 0;     // on this rank
  std::int64_t expert_ffn = 0;  // of one of them
  std::int64_t vocabulary = 0;  // padded

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t value_width() const { return heads * value_dim; }
  std::int64_t qkv_width() const { return (heads + kv_heads) * head_dim + kv_heads * value_dim; }
  std::int64_t logits() const { return tokens * vocabulary; }
  /// bf16 bytes of one micro-batch's hidden states, whole and as they lie between layers.
  std::int64_t hidden_bytes() const { return 2 * tokens * hidden; }
  std::int64_t boundary_bytes() const { return 2 * region_tokens * hidden; }
};

/// Sizes must divide as the validity rules of experiments demand; a breach is our error here.
Cut cut(const Model& model, const Strategy& strategy, LayerKind kind = {});

/// The vocabulary rounded up to a multiple of 128 x tp, as Megatron-LM pads it.
std::int64_t padded_vocabulary(const Model& model, std::int64_t tp);

/// Layers of the model before its section `section`, in forward order, as Strategy::split has them.
std::int64_t layers_before_section(const Model& model, const Strategy& strategy, std::int64_t section);

/// The layers of chunk `chunk` of pipeline rank `stage`, in forward order.
std::vector<LayerKind> chunk_layers(const Model& model, const Strategy& strategy, std::int64_t stage,
                                    std::int64_t chunk);

}  // namespace manyworlds::core::workload
