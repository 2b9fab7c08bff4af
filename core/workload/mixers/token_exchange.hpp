// Context parallelism of mixers as Megatron-Core has it (core/ssm/mamba_context_parallel.py and
// core/ssm/gated_delta_net/common.py @d98e8a6): before the convolution each rank trades its share of the tokens for a
// share of the heads by all-to-alls, and back before the output projection.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Returns the shapes of a rank that has the tokens of all context-parallel ranks.
RankShapes all_token_shapes(const RankShapes& shapes, std::int64_t cp);

/// Columns of 16 bits that tokens have on a rank, sent in one all-to-all.
struct SentColumns {
  std::int64_t columns = 0;
  std::int64_t copies = 1;  // of each column, for several ranks
};

/// Sends the columns of this rank's `tokens` to the ranks of their heads: every tensor is copied into the order of the
/// receivers and sent, one after the other, and what arrives is joined, unless it is one tensor, and put into the order
/// of the tokens, which attention has in another one. `reordered`: columns are first copied into another order, so that
/// one tensor has those of all kinds. Gradients take the reverse way; those of copies are added up.
Operator tokens_to_heads(std::int64_t tokens, const std::vector<SentColumns>& tensors, bool reordered);

/// Sends `columns` of every token back: they are put into the order of attention's tokens, sent, and copied into that
/// of the heads.
Operator heads_to_tokens(std::int64_t tokens, std::int64_t columns);

}  // namespace manyworlds::core::workload
