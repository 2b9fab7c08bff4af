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
      const std::int64_t blocks = pieces(kernel.m, tile.m) * pieces(kernel.n, tile.n) * kernel.batch * split;
      const auto waves = static_cast<double>(pieces(blocks, gpu.compute_units));
      const double depth = static_cast<double>(kernel.k) / static_cast<double>(split) + gpu.gemm_prologue_k;
      double ps = waves * 2 * static_cast<double>(tile.m * tile.n) * depth / (unit_rate * tile.efficiency);
      // Parts are written and read again in fp32 to be added up.
      if (split > 1) ps += static_cast<double>(4 * split * kernel.m * kernel.n * kernel.batch) * ps_per_byte;
      best = std::min(best, std::max(ps, from_memory));
    }
  return best;
}

}  // namespace manyworlds::core::compute
