// How tokens for another node are divided while they travel: one chunk is forwarded there while the next arrives.
#pragma once

#include <algorithm>
#include <cstdint>

namespace manyworlds::core::collective {

/// Chunks on the way to all other nodes together, at least. Libraries send some tens of tokens at a time; so few chunks
/// leave an eighth of a node's tokens to be forwarded after the last arrival, without thousands of transfers.
inline constexpr std::uint32_t kTokenChunks = 8;

/// Returns the chunks for each other of `nodes` nodes.
constexpr std::uint32_t token_chunks(std::uint32_t nodes) {
  return nodes < 2 ? 2 : std::max(2u, (kTokenChunks + nodes - 2) / (nodes - 1));
}

}  // namespace manyworlds::core::collective
