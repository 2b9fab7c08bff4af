// Context parallelism with a ring: ranks share the tokens of a sample, and keys and values move around a ring while
// each rank attends to its current block (Liu et al. 2023, Ring Attention, section 3; Megatron-LM's default,
// cp-comm-type p2p). Every rank has tokens from both ends of the sample, so that blocks cost the same under a causal
// mask.
#pragma once

#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns the shapes of attention to one of `cp` blocks of keys; with one rank this is all of attention.
RankShapes ring_block_shapes(const RankShapes& shapes, std::int64_t cp);

/// Returns the attention core from the operators of one block. The next block arrives during attention to the current
/// one; in the backward pass a block's gradients travel with it and finally return to its rank.
Operator ring_attention(const std::vector<Operator>& block, const RankShapes& shapes, std::int64_t cp);

}  // namespace manyworlds::core::workload
