// Counts tiles of documents.
#include "core/compute/attention_tiles.hpp"

#include <algorithm>

#include "core/base/units.hpp"

namespace manyworlds::core::compute {
namespace {

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

/// Returns the sum of ceil(j / group) for j from 1 to `count`.
std::int64_t sum_of_steps(std::int64_t count, std::int64_t group) {
  const std::int64_t whole = count / group;
  return group * whole * (whole + 1) / 2 + (count - whole * group) * (whole + 1);
}

/// Tiles of `width` keys of all queries of a document of `length` tokens, without a window.
std::int64_t triangle(std::int64_t length, std::int64_t width) {
  const std::int64_t blocks = ceil_div(length, kQueryTile);
  if (width >= kQueryTile) return sum_of_steps(blocks, width / kQueryTile);
  return kQueryTile / width * blocks * (blocks - 1) / 2 + ceil_div(length, width);
}

}  // namespace

void DocumentTiles::add(const DocumentTiles& other, double times) {
  forward_blocks += times * other.forward_blocks;
  backward_blocks += times * other.backward_blocks;
  backward += times * other.backward;
  for (std::size_t i = 0; i < forward.size(); ++i) forward[i] += times * other.forward[i];
}

DocumentTiles causal_tiles(std::int64_t first, std::int64_t end, std::int64_t window) {
  DocumentTiles tiles;
  tiles.forward_blocks = static_cast<double>(ceil_div(end - first, kQueryTile));
  tiles.backward_blocks = static_cast<double>(ceil_div(end, kBackwardTile));
  if (first == 0 && (window == 0 || window >= end)) {
    for (std::size_t i = 0; i < tiles.forward.size(); ++i)
      tiles.forward[i] = static_cast<double>(triangle(end, DocumentTiles::kKeyTiles[i]));
    tiles.backward = static_cast<double>(sum_of_steps(ceil_div(end, kBackwardTile), 1));
    return tiles;
  }
  std::array<std::int64_t, 4> forward{};
  for (std::int64_t query = first; query < end; query += kQueryTile) {
    const std::int64_t last = std::min(query + kQueryTile, end);
    const std::int64_t oldest = window > 0 ? std::max<std::int64_t>(0, query - window + 1) : 0;
    for (std::size_t i = 0; i < forward.size(); ++i)
      forward[i] += ceil_div(last, DocumentTiles::kKeyTiles[i]) - oldest / DocumentTiles::kKeyTiles[i];
  }
  std::int64_t backward = 0;
  for (std::int64_t key = 0; key < end; key += kBackwardTile) {
    const std::int64_t from = std::max(first, key) - first;
    const std::int64_t until = (window > 0 ? std::min(end, key + kBackwardTile + window - 1) : end) - first;
    if (until > from) backward += ceil_div(until, kBackwardTile) - from / kBackwardTile;
  }
  for (std::size_t i = 0; i < forward.size(); ++i) tiles.forward[i] = static_cast<double>(forward[i]);
  tiles.backward = static_cast<double>(backward);
  return tiles;
}

DocumentTiles unmasked_tiles(std::int64_t queries, std::int64_t keys) {
  DocumentTiles tiles;
  tiles.forward_blocks = static_cast<double>(ceil_div(queries, kQueryTile));
  tiles.backward_blocks = static_cast<double>(ceil_div(keys, kBackwardTile));
  for (std::size_t i = 0; i < tiles.forward.size(); ++i)
    tiles.forward[i] = tiles.forward_blocks * static_cast<double>(ceil_div(keys, DocumentTiles::kKeyTiles[i]));
  tiles.backward = tiles.backward_blocks * static_cast<double>(ceil_div(queries, kBackwardTile));
  return tiles;
}

Kernel packed_attention(std::string_view name, KernelClass kernel_class, const AttentionShape& shape,
                        const DocumentTiles& tiles, std::int64_t longest) {
  const bool forward = kernel_class == KernelClass::flash_forward || kernel_class == KernelClass::flash2_forward ||
                       kernel_class == KernelClass::cudnn_forward;
  Kernel kernel = fused_attention(name, kernel_class, shape);
  ExpertTokens& held = kernel.expert_tokens;
  held.tokens = shape.queries;
  held.max_tokens = longest;
  held.tiles[0] = round_half_up(forward ? tiles.forward_blocks : tiles.backward_blocks);
  for (std::size_t i = 0; i < tiles.forward.size(); ++i)
    if (forward || DocumentTiles::kKeyTiles[i] == kBackwardTile)
      held.tiles[i + 1] = round_half_up(forward ? tiles.forward[i] : tiles.backward);
  return kernel;
}

}  // namespace manyworlds::core::compute
