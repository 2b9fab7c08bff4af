// One GPU kernel and its time: GEMMs are costed by tiles and waves, fused attention by FLOPs, all other kernels by the
// bytes that they move; each has a launch time.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/units.hpp"
#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// Fused attention has two generations (flash and cudnn, see workload::AttentionKernel).
enum class KernelClass : std::uint8_t {
  gemm,
  flash_forward,
  flash_backward,
  cudnn_forward,
  cudnn_backward,
  memory_bound
};
enum class Dtype : std::uint8_t { bf16, fp32, fp8, fp4 };

/// The token distribution of a grouped GEMM whose experts have unequal numbers of tokens: total, maximum, and the
/// number of tile rows of 64, 128 and 256 tokens, where each expert begins a new tile.
struct ExpertTokens {
  std::int64_t tokens = 0;  // total over all experts; 0: all experts have equally many
  std::int64_t max_tokens = 0;
  std::int64_t tiles_64 = 0, tiles_128 = 0, tiles_256 = 0;
  auto operator<=>(const ExpertTokens&) const = default;
};

/// A kernel's shape. It holds everything that the cost model depends on, and is therefore the content of a kernel's
/// key. A GEMM is C[m,n] = A[m,k] B[k,n], `batch` times; fused attention has m queries, n keys and heads of width k,
/// `batch` times; memory-bound kernels have no shape, only the bytes that they read and write.
struct Kernel {
  std::string_view name;  // name of the operator; a string literal
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0;  // read and written in device memory
  std::int64_t flops = 0;
  ExpertTokens expert_tokens;  // if experts have unequal tokens; then m (weight gradients: k) is their mean, rounded up
  auto operator<=>(const Kernel&) const = default;
};

/// Returns a GEMM whose result is written in bf16. `dtype` is the type of its inputs.
Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::bf16);
/// Returns a weight gradient: a GEMM that adds to an fp32 gradient [m,n], which it reads and writes.
Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                       Dtype dtype = Dtype::bf16);
/// The same for `batch` experts in one launch, each with its own weights.
Kernel grouped_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                    Dtype dtype);
Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                               std::int64_t batch, Dtype dtype);
/// The same for experts with unequal numbers of tokens: `tokens` has one entry per expert. Experts without tokens cost
/// nothing; at least one must have tokens.
Kernel grouped_gemm(std::string_view name, std::span<const std::int64_t> tokens, std::int64_t n, std::int64_t k,
                    Dtype dtype);
Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n,
                               std::span<const std::int64_t> tokens, Dtype dtype);
/// Returns a batched GEMM of unfused attention (scores or values).
Kernel batched_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);
/// Returns a fused attention kernel. `pairs` is the number of (query, key) pairs that are computed (half of them if
/// causal); `width` is that of queries and keys, `value_width` that of values and outputs. Forward, it reads Q, K and V
/// and writes the output, with 2 GEMMs; backward, it reads these and the output's gradient and writes three gradients,
/// with 5 GEMMs (Dao et al. 2022, algorithms 1 and 4).
Kernel fused_attention(std::string_view name, KernelClass kernel_class, std::int64_t queries, std::int64_t keys,
                       std::int64_t pairs, std::int64_t width, std::int64_t value_width, std::int64_t batch);
/// Returns a kernel without a matrix product, which reads and writes `bytes`.
Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype = Dtype::bf16);

/// Returns the kernel's time on `gpu` by the cost model, rounded half up to a picosecond. Throws InputError, which
/// names the missing option, if the model needs a value of the GPU that is unknown.
Time modelled_time(const Kernel& kernel, const Gpu& gpu);

}  // namespace manyworlds::core::compute
