// Context parallelism without a ring: ranks share the tokens of a sample, and before attention each either gathers the
// keys and values of all (Dubey et al. 2024, The Llama 3 Herd of Models, section 3.3.2; cp-comm-type all_gather of
// Megatron-LM) or trades its share of the tokens for a share of the heads (Jacobs et al. 2023, DeepSpeed Ulysses,
// section 3; cp-comm-type a2a).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Keys and values of all ranks before `core`, the attention core of this rank's queries; they are dropped after it and
/// gathered again for its backward pass, whose gradients of keys and values are added up and scattered.
std::vector<Operator> gather_keys(const std::vector<Operator>& core, const Cut& rank, std::int64_t cp);

/// What a rank sees of attention once it has all tokens and its share of the heads.
Cut turned_to_heads(const Cut& rank, std::int64_t cp);

/// Queries, keys and values by all-to-alls to their heads' ranks, `core` of those heads, and its output back; the
/// gradients the other way round. What is sent is copied into the order of its receivers, and what has come into that
/// of the tokens.
std::vector<Operator> turn_to_heads(const std::vector<Operator>& core, const Cut& rank);

/// Bytes of the keys and values of all context-parallel ranks as one holds them for a moment, 16 bits each.
std::int64_t gathered_key_bytes(const Cut& rank, std::int64_t cp);

}  // namespace manyworlds::core::workload
