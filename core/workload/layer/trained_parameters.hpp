// How many of a model's parameters are trained: all but those of frozen embeddings, heads and parts, and those of the
// pairs of low rank beside these. Embedding and head are frozen where the model is; with an architecture, a part by its
// own options.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Returns how many of model_parameters() are trained.
std::int64_t trained_parameters(const Model& model);

/// Returns how many of layer_parameters() are trained.
Parameters trained_layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind);

/// Returns how many of replicated_layer_parameters() are trained.
std::int64_t trained_replicated_parameters(const Model& model, const Strategy& strategy, LayerKind kind);

/// Returns how many of stage_parameters() are trained: those with gradients, which replicas sum, and with an optimizer.
Parameters trained_stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage);

/// Whether a layer, or any of the model, has a part whose weights are frozen.
bool has_frozen_part(const Model& model, LayerKind kind);
bool has_frozen_part(const Model& model);

/// Returns how many layers at the front of the model run forward only: nothing is trained in them or before them, so
/// that no gradient passes through. They are layers of the first virtual stage: what a later stage receives requires a
/// gradient in any case (Megatron-LM, p2p_communication.py, requires_grad=True).
std::int64_t forward_only_layers(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
