// The feed-forward part of a layer with experts (Lepikhin et al. 2021, GShard, section 2), dropless and with balanced
// routing, as Megatron-LM's all-to-all dispatcher runs it: tokens are routed, copied in the order of their experts,
// sent to the ranks that hold those, multiplied expert by expert in one grouped GEMM, and brought back.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operator_parts.hpp"

namespace manyworlds::core::workload {

/// In how many of `parts` equal parts of the experts those of a token lie, on the average over random choices.
double parts_reached(const Model& model, std::int64_t parts);

void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank,
                 compute::Dtype dtype);

}  // namespace manyworlds::core::workload
