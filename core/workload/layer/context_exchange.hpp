// Context parallelism without a ring: ranks share the tokens of a sample, and before attention each rank either gathers
// the keys and values of all (Dubey et al. 2024, The Llama 3 Herd of Models, section 3.3.2; cp-comm-type all_gather of
// Megatron-LM) or trades its share of the tokens for a share of the heads (Jacobs et al. 2023, DeepSpeed Ulysses,
// section 3; cp-comm-type a2a).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Gathers keys and values of all ranks before `core`, the attention core of this rank's queries. They are dropped
/// after it and gathered again for its backward pass, whose gradients of keys and values are reduce-scattered.
std::vector<Operator> gather_keys(const std::vector<Operator>& core, const RankShapes& shapes, std::int64_t cp);

/// Returns the shapes of attention on a rank that has all tokens and its share of the heads.
RankShapes head_parallel_shapes(const RankShapes& shapes, std::int64_t cp);

/// Sends queries, keys and values to the ranks of their heads by all-to-alls, runs `core` on these heads, and sends its
/// output back; gradients take the reverse way. Tensors are permuted into the order of the receivers before they are
/// sent, and into the order of the tokens after they are received.
std::vector<Operator> exchange_tokens_for_heads(const std::vector<Operator>& core, const RankShapes& shapes);

/// Returns the bytes of the keys and values of all context-parallel ranks, which a rank holds briefly, in 16 bits.
std::int64_t gathered_key_bytes(const RankShapes& shapes, std::int64_t cp);

}  // namespace manyworlds::core::workload
