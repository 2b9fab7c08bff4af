// Fused attention by tiles: a thread block holds a tile of queries and walks the keys that its mask leaves, tile by
// tile (Dao 2023, FlashAttention-2, section 3). In a tile the matrix units and the units of the softmax overlap for the
// most part (Shah et al. 2024, FlashAttention-3, section 3.2). Tiles that a mask cuts are computed as a whole. Backward
// a thread block holds a tile of keys and walks the queries.
#pragma once

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// What a library's forward kernels reach; a GPU has them for the kernels of training.
struct AttentionRates {
  double matrix_efficiency = 0;  // share of the matrix peak inside a tile
  double vector_ops = 0;         // vector instructions per query and key besides the exponential
  double tile_us = 0;            // load of a tile of queries, start of the pipeline, and epilogue, us
  double wide_tile_us = 0;       // the same for each 256 columns of keys and values, us
  double window_us = 0;          // the same for the mask of a window, us
};

/// Returns the rates of the forward kernel of this generation.
AttentionRates attention_rates(KernelClass kernel_class, const Gpu& gpu);

/// Returns the time of a forward kernel in picoseconds, without launch. `ps_per_byte` is the inverse of the achieved
/// memory bandwidth.
double attention_forward_ps(const Kernel& kernel, const AttentionRates& rates, const Gpu& gpu, double ps_per_byte);

/// Returns the time of a backward pass in picoseconds: the attention kernel, one before it for the sums over rows and
/// one after it that casts and sums gradients, without their launches.
double attention_backward_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte);

/// The launches of a backward pass.
inline constexpr int kAttentionBackwardLaunches = 3;

}  // namespace manyworlds::core::compute
