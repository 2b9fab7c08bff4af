// The feed-forward part of a layer with experts (Lepikhin et al. 2021, GShard, section 2) as Megatron-LM's all-to-all
// dispatcher runs it: tokens are routed, copied in the order of their experts, sent to the ranks that hold those,
// multiplied expert by expert in one grouped GEMM, and brought back. Copies of hot experts come along with the tokens,
// and their gradients go back to their owners (FasterMoE, He et al., PPoPP 2022, section 4.2).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operator_parts.hpp"

namespace manyworlds::core::workload {

/// In how many of `parts` equal parts of the experts those of a token lie, on the average over random choices.
double parts_reached(const Model& model, std::int64_t parts);

/// A layer, seen from the ranks of one place among those that share its experts.
struct ExpertLayer {
  LayerKind kind;
  std::int64_t expert_rank = 0;
};
void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const ExpertLayer& of,
                 const Cut& rank, compute::Dtype dtype);

}  // namespace manyworlds::core::workload
