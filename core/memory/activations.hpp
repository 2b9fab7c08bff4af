// What a micro-batch keeps of a part of a rank between its forward and its backward pass, from what its operators keep,
// and what there is beside it for a moment. Formulas: Korthikanti et al. 2022 (arXiv 2205.05198), section 4.
#pragma once

#include <cstdint>

#include "core/workload/layer/keeping.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

/// Bytes of tensors, and the device memory beyond them that the segments they lie in take.
struct Kept {
  std::int64_t bytes = 0;
  std::int64_t rounding = 0;
  Kept& operator+=(const Kept& other) {
    bytes += other.bytes;
    rounding += other.rounding;
    return *this;
  }
};

/// A layer: what it keeps, and what its backward pass adds while it runs.
struct LayerBytes {
  Kept kept;
  std::int64_t away = 0;        // of it in the host's memory, until the backward pass
  Kept held;                    // between the two halves of a backward pass, for gradients of weights
  std::int64_t recomputed = 0;  // made again, at most at a time
  std::int64_t working = 0;     // gradients of activations, at the widest point of the layer, and of copied experts
};

/// A layer on the ranks of one place among those that share its experts.
struct LayerAt {
  workload::LayerKind kind;
  workload::Keeping keeping;
  std::int64_t expert_rank = 0;
  auto operator<=>(const LayerAt&) const = default;
};
LayerBytes layer_bytes(const workload::Model& model, const workload::Strategy& strategy, const LayerAt& at);

/// Embedding and head; the head's logits apart, which live from the loss's forward to its backward pass.
struct EndBytes {
  Kept embedding, head;
  Kept head_held;                     // as LayerBytes::held
  std::int64_t logits_kept = 0;       // fp32
  std::int64_t logits_transient = 0;  // beside them while the loss or its gradient is computed
};

EndBytes end_bytes(const workload::Model& model, const workload::Strategy& strategy);

/// Scores of one attention layer in 16 bits, where attention is not fused; else 0.
std::int64_t score_bytes(const workload::Model& model, const workload::Strategy& strategy);

}  // namespace manyworlds::core::memory
