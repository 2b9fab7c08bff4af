#include "core/compute/gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace manyworlds::core::compute {
namespace {

/// A tile of the result, and the share of a compute unit's rate that its main loop reaches: smaller tiles load more
/// per FLOP.
struct Tile {
  std::int64_t m, n;
  double efficiency;
};
constexpr std::array kTiles{Tile{256, 128, 1}, Tile{128, 256, 1}, Tile{128, 128, 0.97}, Tile{128, 64, 0.7},
                            Tile{64, 128, 0.7}};
constexpr std::array<std::int64_t, 3> kSplits{1, 2, 4};

std::int64_t pieces(std::int64_t whole, std::int64_t piece) {
  return (whole + piece - 1) / piece;
}

/// Rows of tiles of a result, all experts together.
std::int64_t rows_of_tiles(const Kernel& kernel, std::int64_t tile) {
  if (kernel.shares.tiles_128 == 0) return pieces(kernel.m, tile) * kernel.batch;
  return tile == 64 ? kernel.shares.tiles_64 : tile == 128 ? kernel.shares.tiles_128 : kernel.shares.tiles_256;
}

/// What a tile of the result sums over, in the mean, and for the largest of unequal experts.
double mean_depth(const Kernel& kernel) {
  const bool unequal = kernel.shares.tokens > 0 && kernel.shares.tiles_128 == 0;
  return unequal ? static_cast<double>(kernel.shares.tokens) / static_cast<double>(kernel.batch)
                 : static_cast<double>(kernel.k);
}
double largest_depth(const Kernel& kernel) {
  const bool unequal = kernel.shares.tokens > 0 && kernel.shares.tiles_128 == 0;
  return static_cast<double>(unequal ? kernel.shares.most : kernel.k);
}

double gain(Dtype dtype, const Gpu& gpu) {
  if (dtype == Dtype::fp8) return gpu.fp8_gain;
  if (dtype == Dtype::fp4) return gpu.fp8_gain * gpu.fp4_gain;
  return 1;
}

}  // namespace

double gemm_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte) {
  // 1 TFLOP/s does a FLOP in 1 ps.
  const double unit_rate =
      gpu.matrix_tflops * gpu.gemm_efficiency * gain(kernel.dtype, gpu) / static_cast<double>(gpu.compute_units);
  const double from_memory = static_cast<double>(kernel.bytes) * ps_per_byte;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles)
    for (const std::int64_t split : kSplits) {
      const std::int64_t blocks = rows_of_tiles(kernel, tile.m) * pieces(kernel.n, tile.n) * split;
      const auto waves = static_cast<double>(pieces(blocks, gpu.compute_units));
      const double depth = mean_depth(kernel) / static_cast<double>(split) + gpu.gemm_prologue_k;
      const double deepest = largest_depth(kernel) / static_cast<double>(split) + gpu.gemm_prologue_k;
      double ps = waves * 2 * static_cast<double>(tile.m * tile.n) * depth / (unit_rate * tile.efficiency);
      // No unit is done before it has worked off a tile of the largest expert.
      ps = std::max(ps, 2 * static_cast<double>(tile.m * tile.n) * deepest / (unit_rate * tile.efficiency));
      // Parts are written and read again in fp32 to be added up.
      const std::int64_t rows = kernel.shares.tiles_128 > 0 ? kernel.shares.tokens : kernel.m * kernel.batch;
      if (split > 1) ps += static_cast<double>(4 * split * rows * kernel.n) * ps_per_byte;
      best = std::min(best, std::max(ps, from_memory));
    }
  return best;
}

}  // namespace manyworlds::core::compute
