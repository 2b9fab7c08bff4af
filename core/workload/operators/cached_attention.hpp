// Attention of new tokens to those of a cache, and the writing of that cache.
#pragma once

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Whether a cache has values beside keys, or the first columns of its keys are the values (latent attention).
enum class CachedValues : std::uint8_t { own, in_keys };

/// Returns fused attention of the `sequence` new tokens of each sample to `keys` keys, of which `pairs` are seen. Heads
/// that share keys are rows of one tile, so that each key is read once (FlashAttention's pack_gqa), and thread blocks
/// share the keys of a sample, whose results are combined (Dao et al. 2023, Flash-Decoding). There is no backward pass.
Operator cached_attention(const RankShapes& shapes, CachedValues values);

/// Returns the kernel that copies the `width` numbers of each new token in 16 bits to the cache (vLLM's
/// reshape_and_cache()).
Operator cache_write(const RankShapes& shapes, std::int64_t width);

}  // namespace manyworlds::core::workload
