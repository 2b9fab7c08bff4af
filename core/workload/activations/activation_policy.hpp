// What a layer saves of a micro-batch from its forward to its backward pass: recomputed activations are not saved, and
// offloaded activations are in the host's memory in between.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operators.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

struct ActivationPolicy {
  bool recompute_layer = false;   // the whole layer is recomputed
  bool recompute_per_op = false;  // or all but attention and every other GEMM
  Modules recomputed = 0;         // otherwise these modules are recomputed
  Modules offloaded = 0;          // modules whose saved activations are offloaded
  auto operator<=>(const ActivationPolicy&) const = default;
};

/// Returns whether any layer may recompute something, but for experts that get too many tokens.
bool recomputes(const Strategy& strategy);

/// Returns the policy of layer `layer_index` of chunk `chunk` of pipeline rank `stage`. A layer for multi-token
/// prediction is recomputed where all layers of its stage are, and not where only some are (Megatron-LM,
/// MultiTokenPredictionLayer._checkpointed_forward(): uniform, but not block).
ActivationPolicy activation_policy(const Strategy& strategy, std::int64_t stage, std::int64_t chunk,
                                   std::int64_t layer_index, LayerKind kind = {});

/// Moves recomputed activations of a layer's operators from saved to recomputed bytes, and sets before whose backward
/// pass each forward pass is repeated: before that of the last operator that needs its output. The look-up of a later
/// token's embedding, before a layer for multi-token prediction, is not repeated.
void apply_activation_policy(std::vector<Operator>& layer, const ActivationPolicy& policy, const RankShapes& shapes);

/// Returns the maximum bytes of recomputed activations that are in use at once in the layer's backward pass.
std::int64_t peak_recomputed_bytes(const std::vector<Operator>& layer);

/// Returns the saved bytes that are offloaded to the host.
std::int64_t offloaded_bytes(const std::vector<Operator>& layer, const ActivationPolicy& policy);

}  // namespace manyworlds::core::workload
