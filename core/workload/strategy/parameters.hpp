// Parameter counts of what all models have: norms, feed-forward networks, embedding and head.
#pragma once

#include <cstdint>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Parameter counts by replication: Strategy::replicas() ranks hold the same dense parameters, expert_replicas() ranks
/// the same experts.
struct Parameters {
  std::int64_t dense = 0, experts = 0;
  std::int64_t total() const { return dense + experts; }
};

/// Returns the parameters of a norm of hidden states.
std::int64_t norm_parameters(const Model& model);

/// Returns the parameters of the up, gate and down matrices of a feed-forward network of `width`, without the bias of
/// the last one.
std::int64_t feed_forward_parameters(const Model& model, std::int64_t width);

/// Returns the parameters of one expert of a layer, sharded over `etp` ranks.
std::int64_t expert_parameters(const Model& model, std::int64_t etp);

/// Returns the parameters of learned positions.
std::int64_t position_parameters(const Model& model);

/// Returns the parameters of the token table (vocabulary padded for tp) and of a learned position table.
std::int64_t embedding_parameters(const Model& model, std::int64_t tp);

/// Returns the parameters of the token table alone, which a tied output layer shares.
std::int64_t token_table_parameters(const Model& model, std::int64_t tp);

/// Returns the parameters of the norm before the vocabulary layer.
std::int64_t final_norm_parameters(const Model& model);

/// Returns the parameters of the final norm, and of the output layer if it has weights of its own on this rank: untied,
/// or tied with a table on another pipeline rank (`owns_table` false).
std::int64_t head_parameters(const Model& model, std::int64_t tp, bool owns_table);

/// Returns the bytes of one gradient in a reduction over replicas; kParameterBytes are those of one gathered parameter.
std::int64_t gradient_bytes(const Strategy& strategy);
inline constexpr std::int64_t kParameterBytes = 2;

}  // namespace manyworlds::core::workload
