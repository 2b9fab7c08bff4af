// Context parallelism: ranks share the tokens of a sample, and keys and values go round a ring while each rank attends
// to the block that it has (Liu et al. 2023, Ring Attention, section 3; Megatron-LM's default, cp-comm-type p2p). Every
// rank has pieces from both ends of the sample, so that blocks cost the same under a causal mask.
#pragma once

#include <vector>

#include "core/workload/layer/operator_parts.hpp"

namespace manyworlds::core::workload {

/// What a rank sees of the keys while it has one block of `cp`; of one rank everything.
Cut block_of_ring(const Cut& rank, std::int64_t cp);

/// The attention core from the operators of one block. A block moves on while the one before is attended to; backward,
/// its gradients go with it and at last return to their rank.
Operator round_the_ring(const std::vector<Operator>& block, const Cut& rank, std::int64_t cp);

}  // namespace manyworlds::core::workload
