// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1) up to its queries, keys and values, as
// Megatron-LM runs it: down-projections on every tensor-parallel rank, for its share of the tokens under sequence
// parallelism; their narrow results are gathered before the up-projections, which are sharded over heads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload/model/layer_part.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns the weights, the output layer's included: queries pass through a narrow matrix and a norm, and so do keys
/// together with values; all heads share the rotary part of the keys.
PartParameters latent_attention_parameters(const Model& model);

/// Returns the weights of its matrices by the names of options: of queries, of keys with values, and of the output.
std::string latent_matrices(const Model& model);
/// Returns those of its norms, to be added.
std::string latent_norms(const Model& model);

/// Whether narrow keys and values are widened for each head, or all heads attend to them as they are and queries are
/// multiplied with the matrix that would widen keys.
enum class LatentKeys : std::uint8_t { by_head, shared };
void add_latent_attention_input(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                                compute::Dtype dtype, LatentKeys keys = LatentKeys::by_head);

/// A product of every head's `in` columns with a matrix of its own, in one batched GEMM.
Operator product_by_head(const RankShapes& shapes, std::string_view name, std::int64_t in, std::int64_t out);

}  // namespace manyworlds::core::workload
