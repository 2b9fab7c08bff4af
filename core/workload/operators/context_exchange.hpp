// Context parallelism by collectives: ranks share the tokens of a sample, and before attention each rank either gathers
// the keys and values of all (Dubey et al. 2024, The Llama 3 Herd of Models, section 3.3.2; cp-comm-type all_gather of
// Megatron-LM) or trades its share of the tokens for a share of the heads (Jacobs et al. 2023, DeepSpeed Ulysses,
// section 3; cp-comm-type a2a).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns how many keys of a micro-batch one of `cp` ranks has: as many as it has tokens, or its share of another
/// network's, which cross attention reads.
std::int64_t own_keys(const RankShapes& shapes, std::int64_t cp);

/// Gathers keys and values of all ranks before `core`, the attention core of this rank's queries. They are dropped
/// after it and gathered again for its backward pass, whose gradients of keys and values are reduce-scattered.
std::vector<Operator> gather_keys(const std::vector<Operator>& core, const RankShapes& shapes, std::int64_t cp);

/// Attends with `block`, the attention core of one block of keys, to the blocks of all ranks, as PyTorch's
/// context_parallel does (torch/distributed/tensor/experimental/_attention.py, rotate method allgather). Keys and
/// values are packed and gathered during attention to the own block. The result of each further block is merged with
/// those before in fp32; its gradients of keys and values, in fp32, are added to those that arrive from the previous
/// rank and sent on during the next block, and those of queries are added in fp32. Heads that share keys have copies of
/// them, which are sent like others, if attention does not read shared keys itself.
Operator attend_to_gathered_blocks(const Operator& block, const RankShapes& shapes, std::int64_t cp);

/// Returns the shapes of attention on a rank that has all tokens and its share of the heads.
RankShapes head_parallel_shapes(const RankShapes& shapes, std::int64_t cp);

/// Sends queries, keys and values to the ranks of their heads by all-to-alls, runs `core` on these heads, and sends its
/// output back; gradients take the reverse way. Tensors are permuted into the order of the receivers before they are
/// sent, and into the order of the tokens after they are received.
std::vector<Operator> exchange_tokens_for_heads(const std::vector<Operator>& core, const RankShapes& shapes,
                                                std::int64_t cp);

/// Gathers `columns` of every token of all ranks, in 16 bits, and puts what arrives into the order of the sample, of
/// which a rank has pieces from both ends; gradients are added up in a tensor of zeros in the order of the ranks, and
/// reduce-scattered. Kernels wait for both (Megatron-LM, core/transformer/experimental_attention_variant/dsa.py
/// @d98e8a6: gather_from_sequence_parallel_region() and index_select()). What is gathered is not saved here.
Operator gather_columns(std::string_view name, const RankShapes& shapes, std::int64_t columns);

/// Returns the bytes of keys and values that a rank has gathered from others, with their gradients, while it attends:
/// of all in 16 bits (all_gather), or of all in 16 bits with those of its own block and of the one that arrives in fp32
/// (gathered_blocks); none with a ring, whose blocks come and go, or ulysses.
std::int64_t gathered_bytes(const Strategy& strategy, RankShapes shapes);

}  // namespace manyworlds::core::workload
