// What of a model is trained: all of its weights, none of them, or pairs of matrices of low rank beside linear layers
// whose own weights are not (Hu et al. 2021, LoRA).
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// Whether a part's own weights are not trained: it is frozen, or has pairs of low rank beside its linear layers.
inline bool is_frozen(const Model& model) {
  return model.frozen || model.lora_rank > 0;
}

/// Whether there is a pair beside a linear layer, which is one of lora_weight.
inline bool has_pair(const Model& model, Modules weight) {
  return model.lora_rank > 0 && (model.lora_weights == 0 || (model.lora_weights & weight) != 0);
}

/// Returns the weights of the pair beside a linear layer of `in` x `out`: of in x rank and of rank x out, or none.
inline std::int64_t pair_parameters(const Model& model, Modules weight, std::int64_t in, std::int64_t out) {
  return has_pair(model, weight) ? model.lora_rank * (in + out) : 0;
}

}  // namespace manyworlds::core::workload
