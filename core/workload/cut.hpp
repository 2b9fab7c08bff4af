// The dimensions that one rank sees of a model: what tensor and sequence parallelism leave of it.
#pragma once

#include <cstdint>

#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::workload {

struct Cut {
  std::int64_t tensor = 1;         // ranks a layer is cut over
  bool sequence_parallel = false;  // and they split the tokens between tensor-parallel regions
  std::int64_t samples = 0;        // of a micro-batch
  std::int64_t sequence = 0;       // tokens of a sample
  std::int64_t tokens = 0;         // of a micro-batch
  std::int64_t region_tokens = 0;  // tokens on this rank outside tensor-parallel regions: norms, residuals, dropout
  std::int64_t hidden = 0;
  std::int64_t head_dim = 0;
  std::int64_t heads = 0;  // on this rank, as are the next three
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  std::int64_t vocabulary = 0;  // padded

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t logits() const { return tokens * vocabulary; }
  /// bf16 bytes of one micro-batch's hidden states, whole and as they lie between layers.
  std::int64_t hidden_bytes() const { return 2 * tokens * hidden; }
  std::int64_t boundary_bytes() const { return 2 * region_tokens * hidden; }
};

/// Sizes must divide as the validity rules of experiments demand; a breach is our error here.
Cut cut(const Model& model, const Strategy& strategy);

/// The vocabulary rounded up to a multiple of 128 x tp, as Megatron-LM pads it.
std::int64_t padded_vocabulary(const Model& model, std::int64_t tp);

/// Layers of one model chunk: layers spread evenly over pp x virtual stages.
std::int64_t layers_per_chunk(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
