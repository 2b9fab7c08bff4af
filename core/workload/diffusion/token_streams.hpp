// Two streams of tokens in one sequence, text before image, whose layers have weights of their own (MMDiT; Esser et al.
// 2024, "Scaling Rectified Flow Transformers for High-Resolution Image Synthesis", section 4), and the norm of their
// queries and keys.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/options.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

struct TokenStreams {
  std::int64_t text = 0;  // tokens of a sample that are text; the others are the image's
};
const OptionTable<TokenStreams>& token_stream_options();

/// Returns the size that a part with two streams needs and lacks; empty: none.
std::string missing_stream_size(const TokenStreams& streams, const Model& model);

/// Returns the shapes of a rank's tokens of the image, and of the text. Context-parallel ranks divide both streams,
/// each by itself, and have their shares side by side (Hugging Face diffusers, FluxTransformer2DModel._cp_plan).
RankShapes image_shapes(const TokenStreams& streams, const PartOnRank& on, const RankShapes& shapes);
RankShapes text_shapes(const TokenStreams& streams, const PartOnRank& on, const RankShapes& shapes);

/// Copies of queries, keys and values out of their common matrix's output (read and written): what norms read, and what
/// attention reads that takes all three in one layout (`with_values`). Backward their three gradients are copied into
/// one tensor (Transformer Engine, pytorch/ops/basic/rmsnorm.py, dot_product_attention/utils.py, get_qkv_layout(), and
/// class SplitAlongDim). Without norms and rotary positions attention reads that output itself.
Operator split_projections(const Model& model, const RankShapes& shapes, bool with_values);

/// RMSNorm of queries and keys (Esser et al. 2024, section 5.3.2), whatever the norm of the hidden states.
Operator query_key_norm(const RankShapes& shapes);

}  // namespace manyworlds::core::workload
