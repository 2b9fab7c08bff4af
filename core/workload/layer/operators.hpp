// A model as operators with the exact shapes of one rank: its embedding, its layers, which are made of parts, and its
// head, with the collectives of tensor parallelism (Shoeybi et al. 2019) and of sequence parallelism (Korthikanti et
// al. 2022).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

struct LayerBranch;

/// Returns operators in forward order; the backward pass runs them in reverse.
std::vector<Operator> embedding_operators(const Model& model, const Strategy& strategy);
/// Returns a layer's operators on the ranks with position `expert_rank` among those that share its experts.
std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy, LayerKind kind = {},
                                      std::int64_t expert_rank = 0);
/// Appends a part's operators, with its norms and the sum with its input.
void add_branch_operators(std::vector<Operator>& operators, const LayerBranch& branch, const Strategy& strategy,
                          std::int64_t expert_rank);
/// Returns the operators of the final norm, the vocabulary layer and the loss; behind layers of MTP of further losses.
std::vector<Operator> head_operators(const Model& model, const Strategy& strategy);

/// Returns the GEMM and attention FLOPs of one sequence, forward and backward, without recomputation, with unpadded
/// vocabulary: the FLOPs of model FLOPs utilisation (Narayanan et al. 2021, appendix: 72 s l h^2 (1 + s/6h + V/12lh)
/// for GPT). Experts count as balanced. Frozen weights have no gradients, and a teacher a forward pass alone.
std::int64_t model_flops_per_sequence(const Model& model);

}  // namespace manyworlds::core::workload
