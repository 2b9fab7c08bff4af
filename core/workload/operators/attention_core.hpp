// The attention core: scores of queries and keys, their softmax, and the weighted sum of values.
#pragma once

#include <vector>

#include "core/workload/distributions/documents.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns the attention core of one context-parallel rank: all of attention without context parallelism; with a ring
/// or gathered blocks, its tokens and one block of keys, once for each block; otherwise its tokens and all keys, or its
/// heads and all tokens. With documents, pairs are those of a query and a key of one document, and kernels are fused
/// and causal; without fusion they have the FLOPs of these pairs, but no time that holds.
std::vector<Operator> attention_core(const RankShapes& shapes, const Strategy& strategy, bool dropout,
                                     const Documents* documents = nullptr);

/// Returns the bytes of a layer's scores in 16 bits, which only unfused attention has.
std::int64_t score_bytes(const RankShapes& shapes);

/// Returns the bytes of scores that a layer's backward pass has beside those that the forward pass saved: in 16 bits
/// the gradients of the softmax's result and of its input; where scale, mask and softmax are kernels one by one, the
/// former, that in fp32, and the latter in fp32 (Transformer Engine, forward_torch_softmax). Fused attention has none.
std::int64_t score_working_bytes(const RankShapes& shapes);

/// Lets attention save `key_tokens` keys and values, of another network, and not as many as it has queries.
void hold_other_keys(std::vector<Operator>& core, const RankShapes& shapes, std::int64_t key_tokens);

}  // namespace manyworlds::core::workload
