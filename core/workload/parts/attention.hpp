// Self-attention: queries, keys and values, the attention core and the output layer. Multi-head, grouped-query
// (Ainslie et al. 2023) and latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1), with windows or without.
#pragma once

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

/// A gate that multiplies what attention returns: one number for each of its elements (Qwen3-Next), or for each head
/// (Step 3.5).
enum class OutputGate : std::uint8_t { none, elements, heads };
/// Weights of norms of queries and keys: of one head, the same for all, or of all heads (MiniMax M2).
enum class NormWeights : std::uint8_t { head, all_heads };

/// Options of self-attention besides those of the model.
struct AttentionOptions {
  bool causal = true;       // a token sees itself and those before; false: all tokens
  std::int64_t chunk = 0;   // tokens of a chunk, outside of which a token sees none (Llama 4); 0: one chunk
  bool sinks = false;       // the softmax of each head has one more term, a weight (gpt-oss)
  bool qkv_biases = false;  // queries, keys and values have biases, even if other linear layers have none
  OutputGate output_gate = OutputGate::none;
  NormWeights norm_weights = NormWeights::head;
  std::int64_t value_head_dim = 0;  // width of a value, where it is not that of keys (MiMo-V2); 0: as that of keys
};

PartType attention_type();
/// Returns attention without such options.
const LayerPart& attention_part();
/// Whether the part is self-attention of tokens to all those before them, or the last of these in a window.
bool sees_all_before(const LayerPart& part);

}  // namespace manyworlds::core::workload
