// Fused attention against tiles counted one by one.
#include "core/compute/attention.hpp"

#include <catch2/catch.hpp>

#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::compute;

namespace {

/// A GPU without softmax work and with one compute unit, so that times are sums over tiles.
Gpu one_unit() {
  Gpu gpu = workload::round_gpu();
  gpu.launch_us = 0;
  gpu.compute_units = 1;
  gpu.exp_per_clock = 1e12;
  gpu.attention_vector_ops = 0;
  gpu.memory_gb_per_s = 1e9;
  gpu.cudnn_forward_efficiency = gpu.cudnn_backward_efficiency = 0.5;
  return gpu;
}

AttentionShape causal(std::int64_t sequence, std::int64_t width, std::int64_t batch) {
  return {sequence, sequence, sequence * sequence / 2, width, width, batch, batch, 0};
}

/// Tiles of `step` keys that each tile of `rows` queries needs under a causal mask and a window, one query at a time.
double tiles_by_hand(std::int64_t sequence, std::int64_t rows, std::int64_t step, std::int64_t window) {
  std::int64_t tiles = 0;
  for (std::int64_t first = 0; first < sequence; first += rows)
    for (std::int64_t key = 0; key < sequence; key += step) {
      const std::int64_t last_query = std::min(first + rows, sequence) - 1,
                         oldest = window > 0 ? first - window + 1 : 0;
      tiles += key <= last_query && key + step > oldest;
    }
  return static_cast<double>(tiles);
}

double forward_us(const AttentionShape& shape, const Gpu& gpu) {
  const Kernel kernel = fused_attention("a", KernelClass::cudnn_forward, shape);
  return attention_forward_ps(kernel, {0.5, 0, 0, 0, 0}, gpu, 0) * 1e-6;
}

}  // namespace

TEST_CASE("a forward pass computes each tile that its mask leaves, whole") {
  const Gpu gpu = one_unit();
  for (const std::int64_t width : {64, 128, 256}) {
    const std::int64_t keys = width == 64 ? 256 : width == 128 ? 128 : 64;  // 32 KiB of keys in 16 bits
    for (const std::int64_t sequence : {1, 100, 1'024, 1'537, 4'096, 16'384}) {
      CAPTURE(width, sequence);
      // Two GEMMs of 64 x keys x width for each tile, at 200 TFLOP/s.
      const double tile_us = 2.0 * 2 * 64 * static_cast<double>(keys * width) / 200e6;
      CHECK(forward_us(causal(sequence, width, 3), gpu) ==
            Approx(3 * tiles_by_hand(sequence, 64, keys, 0) * tile_us).epsilon(1e-9));
    }
  }
}

TEST_CASE("tiles that are narrower than a thread block are counted up to the diagonal") {
  Gpu gpu = one_unit();
  gpu.attention_tile_kib = 8;  // 32 keys of width 128
  for (const std::int64_t sequence : {64, 1'000, 4'096})
    CHECK(forward_us(causal(sequence, 128, 1), gpu) ==
          Approx(tiles_by_hand(sequence, 64, 32, 0) * 2 * 2 * 64 * 32 * 128 / 200e6).epsilon(1e-9));
}

TEST_CASE("ranks of context parallelism share the tiles of a sample") {
  const Gpu gpu = one_unit();
  const AttentionShape whole = causal(16'384, 128, 1);
  AttentionShape share = whole;
  share.queries /= 4;
  share.pairs /= 4;
  CHECK(forward_us(share, gpu) == Approx(forward_us(whole, gpu) / 4));
  const auto backward_us = [&](const AttentionShape& shape) {
    return attention_backward_ps(fused_attention("a", KernelClass::cudnn_backward, shape), gpu, 0) * 1e-6;
  };
  // Each rank has thread blocks for all keys, of 2 us besides their tiles.
  CHECK(backward_us(whole) - 128 * 2 == Approx(4 * (backward_us(share) - 128 * 2)));
}

TEST_CASE("without a mask a pass computes all tiles, and a window leaves those that it reaches") {
  const Gpu gpu = one_unit();
  AttentionShape shape = causal(4'096, 128, 2);
  const double tile_us = 2.0 * 2 * 64 * 128 * 128 / 200e6;
  shape.pairs = 4'096 * 4'096;
  shape.cut_by_mask = false;
  CHECK(forward_us(shape, gpu) == Approx(2 * 64 * 32 * tile_us));
  shape.window = 512;
  shape.cut_by_mask = true;
  shape.pairs = 512 * (2 * 4'096 - 512) / 2;
  // The counted tiles include the first rows' alike; the model takes the window's mean over its alignments.
  CHECK(forward_us(shape, gpu) == Approx(2 * tiles_by_hand(4'096, 64, 128, 512) * tile_us).epsilon(0.02));
}

TEST_CASE("thread blocks spread over the compute units, and the longest comes last") {
  Gpu gpu = one_unit();
  const double one_us = forward_us(causal(4'096, 128, 1), gpu);
  const double tile_us = 2.0 * 2 * 64 * 128 * 128 / 200e6;
  gpu.compute_units = 100;
  gpu.matrix_tflops = 40'000;  // the same for each unit
  CHECK(forward_us(causal(4'096, 128, 1), gpu) == Approx(one_us / 100 + 32 * tile_us * 0.99));
}

TEST_CASE("softmax and matrix work of a tile overlap but for a fifth of the shorter") {
  Gpu gpu = one_unit();
  const double matrix_us = forward_us(causal(4'096, 128, 1), gpu);
  // As long as a tile's FLOPs: 64 x 128 pairs, each 1 / exp_per_clock clocks of 1 ns.
  gpu.exp_per_clock = 64.0 * 128 * 1e-3 / (2.0 * 2 * 64 * 128 * 128 / 200e6);
  CHECK(forward_us(causal(4'096, 128, 1), gpu) == Approx(1.2 * matrix_us));
}

TEST_CASE("a backward pass computes five GEMMs a tile, and clears, casts and sums gradients") {
  const Gpu gpu = one_unit();
  const std::int64_t s = 4'096, d = 128;
  AttentionShape shape = causal(s, d, 8);
  const auto backward_us = [&](double ps_per_byte) {
    Kernel kernel = fused_attention("a", KernelClass::cudnn_backward, shape);
    return attention_backward_ps(kernel, gpu, ps_per_byte) * 1e-6;
  };
  const double vector_us = 128.0 * 128 * 6 / 128 * 1e-3;  // six instructions a pair on 128 lanes
  const double matrix_us = 5.0 * 2 * 128 * 128 * d / 200e6;
  const double tile_us = std::max(matrix_us, vector_us) + 0.2 * std::min(matrix_us, vector_us);
  const double blocks = s / 128.0;
  CHECK(backward_us(0) == Approx(8 * (tiles_by_hand(s, 128, 128, 0) * tile_us + blocks * 2)));
  CHECK(backward_us(1) - backward_us(0) == Approx(8.0 * s * 14 * d * 1e-6).epsilon(1e-6));
  shape.key_batch = 2;  // four heads share keys
  CHECK(backward_us(1) - backward_us(0) ==
        Approx(8.0 * s * 14 * d * 1e-6 + (4.0 * 8 + 2.0 * 2) * s * 2 * d * 1e-6).epsilon(1e-6));
}
