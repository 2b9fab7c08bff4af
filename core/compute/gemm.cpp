#include "core/compute/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace manyworlds::core::compute {
namespace {

constexpr double kPsPerUs = static_cast<double>(kMicrosecond);
// Split-K factors: the number of thread blocks that share the K dimension of one tile, and the least K of each.
constexpr std::array<std::int64_t, 5> kSplitFactors{1, 2, 4, 8, 16};
constexpr std::int64_t kMinSplitK = 256;
constexpr double kEpilogueElements = 32'768;
/// Time of a weight gradient's main loop that adds to fp32, relative to one that writes 16 bits: 1.05 on B200 and on
/// A100 (SimuMax, 226 and 61 shapes).
constexpr double kAccumulation = 1.05;

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

bool has_unequal_rows(const Kernel& kernel) {
  return kernel.expert_tokens.tiles[0] > 0;
}

/// Returns the number of tile rows of the result, summed over all experts.
std::int64_t tile_rows(const Kernel& kernel, std::int64_t height) {
  if (!has_unequal_rows(kernel)) return ceil_div(kernel.m, height) * kernel.batch;
  return kernel.expert_tokens.tiles_of(height);
}

/// Returns the summation length (K) of a tile: the mean over experts, and the maximum. They differ only in weight
/// gradients of experts with unequal numbers of tokens, where the sum runs over tokens.
bool has_unequal_k(const Kernel& kernel) {
  return kernel.expert_tokens.tokens > 0 && !has_unequal_rows(kernel);
}
double mean_k(const Kernel& kernel) {
  return has_unequal_k(kernel) ? static_cast<double>(kernel.expert_tokens.tokens) / static_cast<double>(kernel.batch)
                               : static_cast<double>(kernel.k);
}
double max_k(const Kernel& kernel) {
  return static_cast<double>(has_unequal_k(kernel) ? kernel.expert_tokens.max_tokens : kernel.k);
}

/// Bytes of an element of an operand, with the scales of blocks of 16 elements in FP4.
double operand_bytes(Dtype dtype) {
  return dtype == Dtype::fp4 ? 0.5625 : dtype == Dtype::fp8 ? 1 : dtype == Dtype::bf16 ? 2 : 4;
}

double peak_flops_per_us(const Kernel& kernel, const Gpu& gpu) {
  const Precision precision = kernel.dtype == Dtype::fp8   ? Precision::fp8
                              : kernel.dtype == Dtype::fp4 ? Precision::nvfp4
                                                           : Precision::bf16;
  return peak_tflops(gpu, precision) * 1e6;
}

/// The time of a GEMM in us with one tile and split, at clocks of the GPU that are `slowdown` times as long as its
/// boost clocks. The memory keeps its rate.
class TiledTime {
 public:
  TiledTime(const Kernel& kernel, const GemmRates& rates, const Gpu& gpu, double slowdown)
      : kernel_(kernel),
        rates_(rates),
        units_(static_cast<double>(gpu.compute_units)),
        clocks_per_us_(gpu.clock_ghz * 1e3 / slowdown),
        flops_per_us_(peak_flops_per_us(kernel, gpu) * rates.efficiency / units_ /
                      (kernel.accumulates ? kAccumulation : 1) / slowdown),
        load_per_us_(rates.load_bytes_per_clock * clocks_per_us_),
        memory_us_(static_cast<double>(kernel.bytes) / (gpu.memory_gb_per_s * rates.memory_efficiency * 1e3)) {}

  bool can_split(const GemmTile& tile, std::int64_t split) const {
    return split == 1 || (kernel_.batch == 1 && split <= rates_.max_split && kernel_.k >= kMinSplitK * split &&
                          static_cast<double>(tiles(tile) * split) <= 2 * units_);
  }

  double us(const GemmTile& tile, std::int64_t split) const {
    const double filled = static_cast<double>(tiles(tile) * split) / units_;
    const double waves = std::max(1.0, filled + rates_.wave_loss * (std::ceil(filled) - filled));
    // The time is at least that of one tile of the largest expert, which one compute unit executes.
    return std::max(blocks_us(tile, split, waves, mean_k(kernel_)), blocks_us(tile, split, 1, max_k(kernel_)));
  }

 private:
  std::int64_t tiles(const GemmTile& tile) const { return tile_rows(kernel_, tile.m) * ceil_div(kernel_.n, tile.n); }

  double blocks_us(const GemmTile& tile, std::int64_t split, double waves, double k) const {
    const auto parts = static_cast<double>(split);
    const auto area = static_cast<double>(tile.m * tile.n), edges = static_cast<double>(tile.m + tile.n);
    const double loop = waves * 2 * area * (k / parts + rates_.prologue_k) / flops_per_us_;
    const double load = waves * edges * (k / parts) * operand_bytes(kernel_.dtype) / load_per_us_;
    double memory = memory_us_;
    // Partial results in fp32 are written and read through the cache.
    if (split > 1) memory += 8 * parts * static_cast<double>(kernel_.m * kernel_.n) / (load_per_us_ * units_);
    const double epilogue = waves * area / kEpilogueElements * rates_.epilogue_clocks / clocks_per_us_;
    return overlapped(loop, load, memory) + epilogue * (split > 1 ? 2 : 1);
  }

  /// A smooth maximum: the fourth root of the sum of fourth powers.
  static double overlapped(double a, double b, double c) {
    const double a2 = a * a, b2 = b * b, c2 = c * c;
    return std::sqrt(std::sqrt(a2 * a2 + b2 * b2 + c2 * c2));
  }

  const Kernel& kernel_;
  const GemmRates& rates_;
  double units_, clocks_per_us_, flops_per_us_, load_per_us_, memory_us_;
};

}  // namespace

const GemmRates& gemm_rates(Dtype dtype, const Gpu& gpu) {
  return gpu.gemm.at(static_cast<std::size_t>(gemm_format(dtype)));
}

namespace {

/// Returns one of the GEMMs that are launched one by one: the mean expert's.
Kernel mean_gemm(const Kernel& kernel) {
  Kernel one = kernel;
  one.batch = 1;
  one.bytes /= kernel.batch;
  one.flops /= kernel.batch;
  one.expert_tokens = {};
  one.one_by_one = false;
  return one;
}

/// Returns the time in us with the fastest tile and split, at clocks that are `slowdown` times as long as boost clocks.
double fastest_us(const Kernel& kernel, const GemmRates& rates, const Gpu& gpu, double slowdown) {
  const TiledTime time(kernel, rates, gpu, slowdown);
  double best_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < gemm_tiles().size(); ++i) {
    if ((rates.tiles >> i & 1) == 0) continue;
    const GemmTile& tile = gemm_tiles()[i];
    for (const std::int64_t split : kSplitFactors)
      if (time.can_split(tile, split)) best_us = std::min(best_us, time.us(tile, split));
  }
  return best_us;
}

}  // namespace

double gemm_ps(const Kernel& kernel, const GemmRates& rates, const Gpu& gpu, PowerState power) {
  if (kernel.one_by_one) {
    const auto gemms = static_cast<double>(kernel.batch);
    return gemms * gemm_ps(mean_gemm(kernel), rates, gpu, power) + (gemms - 1) * gpu.launch_us * kPsPerUs;
  }
  if (power == PowerState::sustained)
    return fastest_us(kernel, rates, gpu, (1 + rates.throttle) / gpu.sustained_rate) * kPsPerUs;
  const double full_us = fastest_us(kernel, rates, gpu, 1);
  const double developed = full_us / (full_us + rates.throttle_ms * 1e3);
  return fastest_us(kernel, rates, gpu, 1 + rates.throttle * developed) * kPsPerUs;
}

}  // namespace manyworlds::core::compute
