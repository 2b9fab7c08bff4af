// Fused attention to packed documents, of which each has thread blocks and tiles of its own: a kernel of variable
// lengths (FlashAttention's flash_attn_varlen_func(), cuDNN's THD layout) begins a tile where a document begins.
#pragma once

#include <array>
#include <cstdint>

#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

inline constexpr std::int64_t kQueryTile = 64;      // queries of a thread block, forward
inline constexpr std::int64_t kBackwardTile = 128;  // keys of a thread block, and queries of a step, backward

/// Thread blocks and tiles of one head, forward and backward, summed over documents; a mean over samples is not whole.
struct DocumentTiles {
  static constexpr std::array<std::int64_t, 4> kKeyTiles{32, 64, 128, 256};
  double forward_blocks = 0, backward_blocks = 0;
  std::array<double, 4> forward{};  // tiles of kQueryTile queries, by their keys in kKeyTiles
  double backward = 0;              // tiles of kBackwardTile by kBackwardTile

  /// Adds `times` the sums of another.
  void add(const DocumentTiles& other, double times);
};

/// Returns the tiles of the queries [first, end) of a document, of which each sees the keys up to itself, at most
/// `window` of them (0: all).
DocumentTiles causal_tiles(std::int64_t first, std::int64_t end, std::int64_t window);
/// Returns the tiles of as many queries that see all of these keys.
DocumentTiles unmasked_tiles(std::int64_t queries, std::int64_t keys);

/// Returns a kernel over packed documents, with `tiles` of one head. `longest` tokens are those that the longest thread
/// block walks without a window: keys, or queries of a backward pass. Kernel::expert_tokens holds them: tokens are the
/// queries, max_tokens is `longest`, tiles of height 16 are thread blocks, and those of other heights tiles with as
/// many keys. No table of measurements describes such a kernel.
Kernel packed_attention(std::string_view name, KernelClass kernel_class, const AttentionShape& shape,
                        const DocumentTiles& tiles, std::int64_t longest);
/// Whether a kernel of fused attention is one of packed_attention().
inline bool is_packed(const Kernel& kernel) {
  return kernel.expert_tokens.tokens > 0;
}

}  // namespace manyworlds::core::compute
