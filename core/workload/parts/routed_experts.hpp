// What tokens go through between the router and the sum of their results: they are copied in the order of their
// experts, sent to the ranks that hold these, multiplied expert by expert in one grouped GEMM, and sent back, as
// Megatron-LM's all-to-all dispatcher does it (Lepikhin et al. 2021, GShard, section 2). Copies of hot experts are
// broadcast together with the tokens, and their gradients return to the owners (FasterMoE, He et al., PPoPP 2022,
// section 4.2).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

/// Returns in how many of `parts` equal parts of the experts a token's experts are, averaged over random choices: among
/// all experts, or first of groups of them where the router limits these (mean_parts_reached_in_groups()).
double mean_parts_reached(const Model& model, std::int64_t parts);
double mean_parts_reached(std::int64_t experts, std::int64_t experts_per_token, std::int64_t parts);

/// Adds the operators between the router and the sum of a token's results, whose sizes are known only after routing,
/// and the passes of `shared` that overlap with them.
void add_routed(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                const std::vector<Operator>& shared);

}  // namespace manyworlds::core::workload
