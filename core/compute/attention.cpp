#include "core/compute/attention.hpp"

#include <algorithm>

#include "core/compute/attention_tiles.hpp"

namespace manyworlds::core::compute {
namespace {

constexpr double kPsPerUs = static_cast<double>(kMicrosecond);
constexpr std::int64_t kMinKeyTile = 32, kMaxKeyTile = 256;
constexpr double kVectorLanes = 128;  // 32-bit operations per clock and compute unit
constexpr double kOverlap = 0.8;      // share of the shorter of matrix and softmax work that the longer one hides

// Fitted to kernels of cuDNN and FlashAttention 2 and 3 on A100, H100 and B200: one set for all of them.
constexpr double kTileUs = 0.5, kWideTileUs = 0.7;
constexpr double kBackwardTileUs = 2, kBackwardVectorOps = 6, kBackwardTail = 0.2;

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

bool is_windowed(const Kernel& kernel) {
  return kernel.attention.window > 0 && kernel.attention.window < kernel.n;
}

/// The tiles of one head and sample.
struct Tiles {
  double all = 0, longest = 0;  // of one thread block
  std::int64_t blocks = 0;
};

/// Returns the tiles of `blocks` thread blocks on a causal square, each of `tile` tokens, which walks the other side in
/// steps. The longest block takes `longest` steps, which a window may limit: it has a mean over its alignments.
double masked_tiles(std::int64_t blocks, double longest, std::int64_t tile, std::int64_t step) {
  // The first blocks reach less than the window. If a step is wider than a block, several of them have equally many.
  const auto reached = static_cast<std::int64_t>(longest * static_cast<double>(step) / static_cast<double>(tile));
  const std::int64_t early = std::min(blocks - 1, reached);
  const std::int64_t wide = std::max<std::int64_t>(step / tile, 1), narrow = std::max<std::int64_t>(tile / step, 1);
  const std::int64_t groups = early / wide;
  const std::int64_t counted = wide > 1 ? wide * groups * (groups + 1) / 2 + (early - groups * wide) * (groups + 1)
                                        : narrow * early * (early + 1) / 2;
  return static_cast<double>(counted) + static_cast<double>(blocks - early) * longest;
}

/// Returns the steps of the longest thread block, which walks `side` tokens, and how a window limits them.
double longest_block(const Kernel& kernel, std::int64_t side, std::int64_t tile, std::int64_t step) {
  const auto longest = static_cast<double>(ceil_div(side, step));
  if (!is_windowed(kernel)) return longest;
  const auto reach = static_cast<double>(kernel.attention.window + tile - std::min(tile, step));
  return std::min(longest, 1 + reach / static_cast<double>(step));
}

/// The tiles of one head and all documents.
Tiles packed_tiles(const Kernel& kernel, std::int64_t tile, std::int64_t step) {
  const ExpertTokens& held = kernel.expert_tokens;
  return {static_cast<double>(held.tiles_of(step)), longest_block(kernel, held.max_tokens, tile, step), held.tiles[0]};
}

Tiles tiles_of(const Kernel& kernel, std::int64_t held, std::int64_t walked, std::int64_t tile, std::int64_t step) {
  if (is_packed(kernel)) return packed_tiles(kernel, tile, step);
  Tiles tiles;
  tiles.blocks = ceil_div(held, tile);
  const auto whole = static_cast<double>(ceil_div(walked, step));
  // Ranks of context parallelism share the queries of a square, and have equally many tiles of it.
  const std::int64_t side = std::max(held, walked);
  const double longest = longest_block(kernel, side, tile, step);
  tiles.longest = std::min(whole, longest);
  const double all_pairs = whole * static_cast<double>(tiles.blocks);
  if (kernel.attention.cut_by_mask)
    tiles.all = masked_tiles(ceil_div(side, tile), longest, tile, step) * static_cast<double>(std::min(held, walked)) /
                static_cast<double>(side);
  else
    tiles.all = static_cast<double>(kernel.attention.pairs) / static_cast<double>(tile * step);
  tiles.all = std::min(tiles.all, all_pairs);
  return tiles;
}

/// FLOPs in a microsecond of one compute unit, at the peak.
double unit_flops_per_us(Dtype dtype, const Gpu& gpu) {
  const double tflops = dtype == Dtype::fp8 ? peak_tflops(gpu, Precision::fp8) : gpu.matrix_tflops;
  return tflops * 1e6 / static_cast<double>(gpu.compute_units);
}

/// Time of one tile, in us, from its FLOPs and its pairs of a query and a key.
double tile_us(double flops, double pairs, double vector_ops, double flops_per_us, const Gpu& gpu) {
  const double matrix = flops / flops_per_us;
  const double softmax = pairs * (1 / gpu.exp_per_clock + vector_ops / kVectorLanes) / (gpu.clock_ghz * 1e3);
  return std::max(matrix, softmax) + (1 - kOverlap) * std::min(matrix, softmax);
}

/// Time of all thread blocks: they spread over the compute units, and the last to begin may be the longest.
double blocks_us(double work_us, double longest_us, double tail, const Gpu& gpu) {
  const auto units = static_cast<double>(gpu.compute_units);
  return std::max(work_us / units + tail * longest_us * (1 - 1 / units), longest_us);
}

/// Returns the share of the matrix peak inside a tile.
double efficiency_of(KernelClass kernel_class, const Gpu& gpu) {
  switch (kernel_class) {
    case KernelClass::flash_forward:
      return gpu.flash_forward_efficiency;
    case KernelClass::flash_backward:
      return gpu.flash_backward_efficiency;
    case KernelClass::flash2_forward:
      return gpu.flash2_forward_efficiency;
    case KernelClass::flash2_backward:
      return gpu.flash2_backward_efficiency;
    case KernelClass::cudnn_forward:
      return gpu.cudnn_forward_efficiency;
    default:
      return gpu.cudnn_backward_efficiency;
  }
}

}  // namespace

AttentionRates attention_rates(KernelClass kernel_class, const Gpu& gpu) {
  return {efficiency_of(kernel_class, gpu), gpu.attention_vector_ops, kTileUs, kWideTileUs, 0};
}

double attention_forward_ps(const Kernel& kernel, const AttentionRates& rates, const Gpu& gpu, double ps_per_byte) {
  const std::int64_t width = kernel.k, value_width = kernel.attention.value_width;
  const std::int64_t bytes = kernel.dtype == Dtype::fp8 ? 1 : 2;
  std::int64_t key_tile = kMaxKeyTile;
  while (key_tile > kMinKeyTile && key_tile * std::max(width, value_width) * bytes > gpu.attention_tile_kib * 1024)
    key_tile /= 2;
  const Tiles tiles = tiles_of(kernel, kernel.m, kernel.n, kQueryTile, key_tile);
  const auto columns = static_cast<double>(width + value_width);
  const auto pairs = static_cast<double>(kQueryTile * key_tile);
  const double tile = tile_us(2 * pairs * columns, pairs, rates.vector_ops,
                              unit_flops_per_us(kernel.dtype, gpu) * rates.matrix_efficiency, gpu);
  const double block = rates.tile_us + rates.wide_tile_us * columns / 256 + (is_windowed(kernel) ? rates.window_us : 0);
  const double work =
      static_cast<double>(kernel.batch) * (tiles.all * tile + static_cast<double>(tiles.blocks) * block);
  const double us = blocks_us(work, tiles.longest * tile + block, 1, gpu);
  return std::max(us * kPsPerUs, static_cast<double>(kernel.bytes) * ps_per_byte);
}

double attention_backward_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte) {
  const std::int64_t width = kernel.k, value_width = std::max(width, kernel.attention.value_width);
  const Tiles tiles = tiles_of(kernel, kernel.n, kernel.m, kBackwardTile, kBackwardTile);
  const auto pairs = static_cast<double>(kBackwardTile * kBackwardTile);
  const double tile = tile_us(2 * pairs * static_cast<double>(3 * width + 2 * value_width), pairs, kBackwardVectorOps,
                              unit_flops_per_us(kernel.dtype, gpu) * efficiency_of(kernel.kernel_class, gpu), gpu);
  const double work =
      static_cast<double>(kernel.batch) * (tiles.all * tile + static_cast<double>(tiles.blocks) * kBackwardTileUs);
  const double us = blocks_us(work, tiles.longest * tile + kBackwardTileUs, kBackwardTail, gpu);

  // The sums over rows read outputs and their gradients; gradients of queries are cleared, read and cast from fp32;
  // gradients of keys and values are summed over the heads that share them.
  const std::int64_t shared = kernel.attention.key_batch;
  std::int64_t bytes = kernel.batch * kernel.m * (4 * value_width + 10 * width);
  if (shared < kernel.batch) bytes += (4 * kernel.batch + 2 * shared) * kernel.n * (width + value_width);
  return us * kPsPerUs + static_cast<double>(bytes) * ps_per_byte;
}

}  // namespace manyworlds::core::compute
