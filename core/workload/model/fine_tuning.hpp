// What of a model is trained: all of its weights, none of them, or pairs of matrices of low rank beside linear layers
// whose own weights are not (Hu et al. 2021, LoRA). A step that is a forward pass alone trains nothing.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// Projections that may have a pair each instead of the one of linear_qkv or linear_fc1, by Megatron-Bridge's names of
/// them (src/megatron/bridge/peft/canonical_lora.py): the bits behind those of the other weights.
namespace lora_weight {
inline constexpr Modules linear_q = 16, linear_k = 32, linear_v = 64, linear_fc1_gate = 128, linear_fc1_up = 256;
}  // namespace lora_weight

/// All linear layers, as a set of 0 is; all projections that may have a pair each; and no weight, as opposed to 0.
inline constexpr Modules kAllLoraWeights =
    lora_weight::linear_qkv | lora_weight::linear_proj | lora_weight::linear_fc1 | lora_weight::linear_fc2;
inline constexpr Modules kProjectionLoraWeights = lora_weight::linear_q | lora_weight::linear_k |
                                                  lora_weight::linear_v | lora_weight::linear_fc1_gate |
                                                  lora_weight::linear_fc1_up;
inline constexpr Modules kNoLoraWeights = Modules{1} << 31;

/// Whether a step is a forward pass alone: no backward pass, no gradients, no optimizer.
inline bool is_inference(const Model& model) {
  return model.inference != Inference::none;
}

/// Whether a step has forward passes that generate: keys and values are kept, and of each sample the last token has
/// logits.
inline bool is_generation(const Model& model) {
  return model.inference == Inference::generation;
}

/// Whether a part's own weights are not trained: it is frozen, or has pairs of low rank beside its linear layers, or
/// nothing of the model is trained in this step.
inline bool is_frozen(const Model& model) {
  return model.frozen || model.lora_rank > 0 || is_inference(model);
}

/// Whether there is a pair beside a linear layer or a projection, which is one of lora_weight.
inline bool has_pair(const Model& model, Modules weight) {
  return model.lora_rank > 0 && ((model.lora_weights == 0 ? kAllLoraWeights : model.lora_weights) & weight) != 0;
}

/// Returns the weights of the pair beside a linear layer of `in` x `out`: of in x rank and of rank x out, or none.
inline std::int64_t pair_parameters(const Model& model, Modules weight, std::int64_t in, std::int64_t out) {
  return has_pair(model, weight) ? model.lora_rank * (in + out) : 0;
}

/// Returns the norms that are trained beside such a layer (Liu et al. 2024, DoRA): one for each of its outputs, or
/// none.
inline std::int64_t magnitude_parameters(const Model& model, Modules weight, std::int64_t out) {
  return model.lora_magnitudes && has_pair(model, weight) ? out : 0;
}

}  // namespace manyworlds::core::workload
