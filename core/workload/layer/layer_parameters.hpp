// Parameter counts of layers, of a model and of one rank.
#pragma once

#include <cstdint>

#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/layer_part.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {

/// Returns the parameters of the whole model without its teacher, with unpadded vocabulary: what papers print.
std::int64_t model_parameters(const Model& model);

/// Returns the parameters that a token visits: only experts_per_token of the experts of a layer count, and of embedding
/// tables that ranks share out the rows that a sample looks up.
std::int64_t active_parameters(const Model& model);

/// Returns the parameters of one layer on one rank. Weights and the biases of column-parallel layers are sharded over
/// tp; norms, biases of row-parallel layers, routers and the down-projections of latent attention are replicated.
Parameters layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind);

/// Returns the parameters of a layer whose gradients tensor-parallel ranks must sum when they split the tokens
/// (sequence parallelism): all replicated ones, parts that they share out by samples among them.
std::int64_t replicated_layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind);

/// Returns all parameters of pipeline rank `stage`, a teacher's too, but those of tables that ranks share out.
Parameters stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage);

/// Returns the parameters of the copy of the token table that the last stage embeds the tokens of multi-token
/// prediction with: none if the first stage is on the same rank, or the output layer, being tied, is such a copy.
/// (Megatron-LM then has another matrix, which nothing uses.)
std::int64_t table_copy_parameters(const Model& model, const Strategy& strategy);

/// Returns what the ranks of a class hold of such tables.
TableBytes table_bytes(const Model& model, const Strategy& strategy, RankClass rank_class);

}  // namespace manyworlds::core::workload
