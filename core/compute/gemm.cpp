#include "core/compute/gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace manyworlds::core::compute {
namespace {

/// A tile of the result, and the share of a compute unit's peak rate that its main loop reaches: smaller tiles load
/// more bytes per FLOP.
struct Tile {
  std::int64_t m, n;
  double efficiency;
};
constexpr std::array kTiles{Tile{256, 128, 1}, Tile{128, 256, 1}, Tile{128, 128, 0.97}, Tile{128, 64, 0.7},
                            Tile{64, 128, 0.7}};
// Split-K factors: the number of thread blocks that share the K dimension of one tile.
constexpr std::array<std::int64_t, 3> kSplitFactors{1, 2, 4};

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

/// Returns the number of tile rows of the result, summed over all experts. `tile` is the tile's height: 64, 128 or 256.
std::int64_t tile_rows(const Kernel& kernel, std::int64_t tile) {
  if (kernel.expert_tokens.tiles_128 == 0) return ceil_div(kernel.m, tile) * kernel.batch;
  return tile == 64    ? kernel.expert_tokens.tiles_64
         : tile == 128 ? kernel.expert_tokens.tiles_128
                       : kernel.expert_tokens.tiles_256;
}

/// Returns the summation length (K) of a tile: the mean over experts, and the maximum. They differ only in weight
/// gradients of experts with unequal numbers of tokens, where the sum runs over tokens.
double mean_k(const Kernel& kernel) {
  const bool unequal = kernel.expert_tokens.tokens > 0 && kernel.expert_tokens.tiles_128 == 0;
  return unequal ? static_cast<double>(kernel.expert_tokens.tokens) / static_cast<double>(kernel.batch)
                 : static_cast<double>(kernel.k);
}
double max_k(const Kernel& kernel) {
  const bool unequal = kernel.expert_tokens.tokens > 0 && kernel.expert_tokens.tiles_128 == 0;
  return static_cast<double>(unequal ? kernel.expert_tokens.max_tokens : kernel.k);
}

/// Returns the rate of the main loop in `dtype`, relative to bf16.
double precision_gain(Dtype dtype, const Gpu& gpu) {
  if (dtype == Dtype::fp8) return gpu.fp8_gain;
  if (dtype == Dtype::fp4) return gpu.fp8_gain * gpu.fp4_gain;
  return 1;
}

}  // namespace

double gemm_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte) {
  // A rate of 1 TFLOP/s is one FLOP per picosecond.
  const double unit_rate = gpu.matrix_tflops * gpu.gemm_efficiency * precision_gain(kernel.dtype, gpu) /
                           static_cast<double>(gpu.compute_units);
  const double memory_ps = static_cast<double>(kernel.bytes) * ps_per_byte;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles)
    for (const std::int64_t split : kSplitFactors) {
      const std::int64_t blocks = tile_rows(kernel, tile.m) * ceil_div(kernel.n, tile.n) * split;
      const auto waves = static_cast<double>(ceil_div(blocks, gpu.compute_units));
      const double k_length = mean_k(kernel) / static_cast<double>(split) + gpu.gemm_prologue_k;
      const double max_k_length = max_k(kernel) / static_cast<double>(split) + gpu.gemm_prologue_k;
      double ps = waves * 2 * static_cast<double>(tile.m * tile.n) * k_length / (unit_rate * tile.efficiency);
      // The time is at least that of one tile of the largest expert, which one compute unit executes.
      ps = std::max(ps, 2 * static_cast<double>(tile.m * tile.n) * max_k_length / (unit_rate * tile.efficiency));
      // Split-K: partial results in fp32 are added up; their 4 bytes are counted once.
      const std::int64_t rows =
          kernel.expert_tokens.tiles_128 > 0 ? kernel.expert_tokens.tokens : kernel.m * kernel.batch;
      if (split > 1) ps += static_cast<double>(4 * split * rows * kernel.n) * ps_per_byte;
      best = std::min(best, std::max(ps, memory_ps));
    }
  return best;
}

}  // namespace manyworlds::core::compute
