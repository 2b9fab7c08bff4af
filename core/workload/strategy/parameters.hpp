// How many parameters a model has, and how many of them a rank holds.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Parameters by the ranks that hold the same: Strategy::replicas() those of the dense part, expert_replicas() those
/// of the experts.
struct Parameters {
  std::int64_t dense = 0, experts = 0;
  std::int64_t total() const { return dense + experts; }
};

/// Of the whole model, vocabulary unpadded: the number that papers print.
std::int64_t model_parameters(const Model& model);

/// Of these the ones that a token visits: of the experts only experts_per_token.
std::int64_t active_parameters(const Model& model);

/// One layer on one rank. Weights and their column-parallel biases are cut over tp; norms, row-parallel biases, routers
/// and the down-projections of latent attention are on every rank.
Parameters layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind);

/// Of a layer, those whose gradients tensor ranks must add up when tokens are split between them (sequence
/// parallelism): all that are on every rank.
std::int64_t replicated_layer_parameters(const Model& model, LayerKind kind);

/// One expert of a layer, cut over `etp` ranks.
std::int64_t expert_parameters(const Model& model, std::int64_t etp);

/// Token table (vocabulary padded for tp) and, if learned, position table.
std::int64_t embedding_parameters(const Model& model, std::int64_t tp);

/// Of these the token table alone, which a tied output layer shares.
std::int64_t token_table_parameters(const Model& model, std::int64_t tp);

/// The norm before the vocabulary layer.
std::int64_t final_norm_parameters(const Model& model);

/// Final norm, and the output layer where it has weights of its own on this rank: untied, or tied with the table on
/// another pipeline rank (`owns_table` false).
std::int64_t head_parameters(const Model& model, std::int64_t tp, bool owns_table);

/// All that pipeline rank `stage` holds.
Parameters stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage);

/// Bytes of a gradient as it is added up over replicas, and of a parameter as it is gathered.
std::int64_t gradient_bytes(const Strategy& strategy);
inline constexpr std::int64_t kParameterBytes = 2;

}  // namespace manyworlds::core::workload
