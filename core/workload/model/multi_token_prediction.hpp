// Layers behind a model that predict one token further each (multi-token prediction, MTP: DeepSeek-AI 2024,
// DeepSeek-V3, section 2.2). Layer k takes the hidden states before it and the embedding of the token k places further,
// and ends in the model's own output layer. Its kind is that of the model's last layer, with parts around it. The last
// stage of a pipeline has them, between the layers of the model and the head (Megatron-LM @d98e8a6,
// core/transformer/multi_token_prediction.py).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

inline constexpr std::uint32_t kMtpBlock = UINT32_MAX;  // LayerKind::block of a layer for multi-token prediction

inline bool is_mtp(LayerKind kind) {
  return kind.block == kMtpBlock;
}

/// Returns the kind of the layers for multi-token prediction: that of the last layer, in a block of its own.
LayerKind mtp_kind(const Model& model);

/// Returns the kind of a layer without the parts around it: that of the last layer for multi-token prediction, and
/// `kind` itself otherwise.
LayerKind inner_kind(const Model& model, LayerKind kind);

/// Returns the kinds of all layers in forward order, those for multi-token prediction at the end.
std::vector<LayerKind> all_layers(const Model& model);

/// Whether the first and the last stage of a pipeline share the token table: the output layer has its weights, or
/// layers for multi-token prediction embed tokens as well. On different ranks each has a copy, and both sum its
/// gradient.
bool stages_share_table(const Model& model);

}  // namespace manyworlds::core::workload
