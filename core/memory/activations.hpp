// Activation memory of a micro-batch: what layers, embedding and head save between the forward and the backward pass,
// as the sum over their operators, and their temporary memory. Formulas: Korthikanti et al. 2022 (arXiv 2205.05198),
// section 4.
#pragma once

#include <cstdint>

#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

/// Bytes of tensors, and the additional device memory that their allocator segments take.
struct TensorBytes {
  std::int64_t bytes = 0;
  std::int64_t rounding = 0;
  TensorBytes& operator+=(const TensorBytes& other) {
    bytes += other.bytes;
    rounding += other.rounding;
    return *this;
  }
};

/// Memory of a layer: what it saves for the backward pass, and what its backward pass needs while it runs.
struct LayerBytes {
  TensorBytes saved;
  std::int64_t offloaded = 0;          // bytes of saved tensors that are in host memory until the backward pass
  TensorBytes weight_gradient_inputs;  // inputs of weight gradients, between the two halves of a split backward pass
  std::int64_t recomputed = 0;         // maximum of recomputed bytes at any time
  std::int64_t working = 0;  // gradients of activations at the layer's maximum, and gradients of copied experts
  /// In a step without a backward pass nothing is saved, and working memory is that of the forward pass; bytes that a
  /// micro-batch keeps while it generates.
  TensorBytes cached;
};

/// Identifies a layer: its kind and its activation policy, on the ranks at one position among those that share its
/// experts.
struct LayerKey {
  workload::LayerKind kind;
  workload::ActivationPolicy policy;
  std::int64_t expert_rank = 0;
  bool forward_only = false;  // no gradient passes through it (workload::forward_only_layers())
  auto operator<=>(const LayerKey&) const = default;
};
LayerBytes layer_bytes(const workload::Model& model, const workload::Strategy& strategy, const LayerKey& key);

/// Memory of embedding and head. The head's logits are counted separately, because they live from the loss's forward
/// pass to its backward pass.
struct EmbeddingHeadBytes {
  TensorBytes embedding, head;
  TensorBytes head_weight_gradient_inputs;  // as LayerBytes::weight_gradient_inputs
  std::int64_t saved_logits = 0;            // from the loss's forward to its backward pass
  std::int64_t mtp_logits = 0;              // the same of multi-token prediction, whose losses are before the model's
  std::int64_t transient_logits = 0;        // additional bytes while the loss or its gradient is computed
  std::int64_t logits_gradient = 0;         // in 16 bits: the input of the head's backward pass
  std::int64_t head_working = 0;  // while that runs: the weight's gradient in 16 bits, and those of activations
  /// A loss in chunks (workload::loss_in_chunks()): the forward pass has the head's backward pass, and logits are those
  /// of a chunk, none of them saved. Besides these it needs hidden states and their gradients, the one that is saved
  /// not counted: `chunks_working` from chunk to chunk, and `cast_working` when that one is made of them.
  bool in_chunks = false;
  std::int64_t chunks_working = 0, cast_working = 0;
  std::int64_t embedding_working = 0;  // while the embedding's backward pass runs: the gradient of its whole table
};

EmbeddingHeadBytes embedding_head_bytes(const workload::Model& model, const workload::Strategy& strategy);

/// Returns the bytes of the buffer that all layers share: scores in 16 bits, if attention is not fused.
std::int64_t shared_buffer_bytes(const workload::Model& model, const workload::Strategy& strategy);

}  // namespace manyworlds::core::memory
