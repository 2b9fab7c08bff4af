// One GPU kernel and what it costs: a GEMM by its tiles and waves, fused attention by its FLOPs, everything else by
// the bytes it moves, and the launch.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/units.hpp"
#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// Fused attention has two generations (flash, cudnn: see workload::AttentionKernel).
enum class KernelClass : std::uint8_t {
  gemm,
  flash_forward,
  flash_backward,
  cudnn_forward,
  cudnn_backward,
  memory_bound
};
enum class Dtype : std::uint8_t { bf16, fp32, fp8, fp4 };

/// Tokens of a GEMM of several experts, where they have unequal numbers: all, those of the largest share, and the tiles
/// of 64, 128 and 256 tokens that they fill, each expert its own.
struct Shares {
  std::int64_t tokens = 0;  // 0: all have as many
  std::int64_t most = 0;
  std::int64_t tiles_64 = 0, tiles_128 = 0, tiles_256 = 0;
  auto operator<=>(const Shares&) const = default;
};

/// Everything a cost model may look at, and so the content of a kernel's key. A GEMM is C[m,n] = A[m,k] B[k,n],
/// `batch` times; fused attention has m queries, n keys and heads of width k, `batch` times; memory-bound kernels have
/// no shape, only the bytes they read and write.
struct Kernel {
  std::string_view name;  // of the operator; a string literal
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0;  // read and written in device memory
  std::int64_t flops = 0;
  Shares shares;  // of unequal experts: m, of a weight gradient k, is then the mean, rounded up
  auto operator<=>(const Kernel&) const = default;
};

/// A GEMM whose result is written in bf16; `dtype` is that of its inputs.
Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::bf16);
/// A weight gradient: a GEMM that adds to an fp32 gradient [m,n] (read and written).
Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                       Dtype dtype = Dtype::bf16);
/// The same for `batch` experts in one launch, each with weights of its own.
Kernel grouped_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                    Dtype dtype);
Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                               std::int64_t batch, Dtype dtype);
/// The same for experts with so many tokens each, of which some must have any; none of those without.
Kernel grouped_gemm(std::string_view name, std::span<const std::int64_t> tokens, std::int64_t n, std::int64_t k,
                    Dtype dtype);
Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n,
                               std::span<const std::int64_t> tokens, Dtype dtype);
/// A batched GEMM of the attention core.
Kernel batched_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);
/// Fused attention. `pairs` is how many of the queries x keys are looked at (half of them if causal); `value_width`
/// is that of values and outputs. Forward it reads Q, K, V and writes the output, 2 GEMMs; backward it reads those and
/// the output's gradient and writes three gradients, 5 GEMMs (Dao et al. 2022, algorithms 1 and 4).
Kernel fused_attention(std::string_view name, KernelClass kernel_class, std::int64_t queries, std::int64_t keys,
                       std::int64_t pairs, std::int64_t width, std::int64_t value_width, std::int64_t batch);
Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype = Dtype::bf16);

/// Time on `gpu`, rounded half up to a picosecond. InputError names a figure of the GPU that is absent.
Time cost(const Kernel& kernel, const Gpu& gpu);

}  // namespace manyworlds::core::compute
