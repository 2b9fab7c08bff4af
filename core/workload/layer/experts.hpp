// The feed-forward part of a layer with experts (Lepikhin et al. 2021, GShard, section 2) as Megatron-LM's all-to-all
// dispatcher runs it: tokens are routed, copied in the order of their experts, sent to the ranks that hold these,
// multiplied expert by expert in one grouped GEMM, and sent back. Copies of hot experts are broadcast together with the
// tokens, and their gradients return to the owners (FasterMoE, He et al., PPoPP 2022, section 4.2).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns in how many of `parts` equal parts of the experts a token's experts are, averaged over random choices.
double mean_parts_reached(const Model& model, std::int64_t parts);
double mean_parts_reached(std::int64_t experts, std::int64_t experts_per_token, std::int64_t parts);

/// A layer as seen by the ranks with one position among those that share its experts.
struct ExpertLayer {
  LayerKind kind;
  std::int64_t expert_rank = 0;
};
void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy,
                 const ExpertLayer& layer, const RankShapes& shapes, compute::Dtype dtype);

}  // namespace manyworlds::core::workload
