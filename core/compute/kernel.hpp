// One GPU kernel and its time: GEMMs and fused attention are costed by tiles, kernels of chunked scans by their FLOPs
// or bytes, all others by the bytes that they move; each has a launch time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/units.hpp"
#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// Fused attention has three kinds of kernels (flash, flash2 and cudnn, see workload::AttentionKernel). state_space and
/// delta_rule are kernels of scans by chunks: Mamba-2's and the gated delta rule's.
enum class KernelClass : std::uint8_t {
  gemm,
  flash_forward,
  flash_backward,
  flash2_forward,
  flash2_backward,
  cudnn_forward,
  cudnn_backward,
  memory_bound,
  state_space,
  delta_rule
};
enum class Dtype : std::uint8_t { bf16, fp32, fp8, fp4 };

/// The token distribution of a grouped GEMM whose experts have unequal numbers of tokens: total, maximum, and the
/// number of tile rows by height, where each expert begins a new tile.
struct ExpertTokens {
  static constexpr std::array<std::int64_t, 5> kTileHeights{16, 32, 64, 128, 256};
  std::int64_t tokens = 0;  // total over all experts; 0: all experts have equally many
  std::int64_t max_tokens = 0;
  std::array<std::int64_t, 5> tiles{};  // by height; all 0 if no tile rows depend on the tokens

  /// Returns the number of tile rows of a height in kTileHeights.
  std::int64_t tiles_of(std::int64_t height) const;
  auto operator<=>(const ExpertTokens&) const = default;
};

/// The rest of the shape of fused attention.
struct AttentionExtent {
  std::int64_t pairs = 0;        // pairs of a query and a key, of one head and sample, that the mask leaves
  std::int64_t value_width = 0;  // of values and outputs
  std::int64_t key_batch = 0;    // samples times heads of keys and values: fewer than `batch` if heads share them
  std::int64_t window = 0;       // keys that a query sees at most; 0: all
  bool cut_by_mask = true;       // whether the mask cuts tiles: the diagonal, and the end of the window
  auto operator<=>(const AttentionExtent&) const = default;
};

/// A kernel's shape. It holds everything that the cost model depends on, and is therefore the content of a kernel's
/// key. A GEMM is C[m,n] = A[m,k] B[k,n], `batch` times; fused attention has m queries, n keys and heads of width k,
/// `batch` times; memory-bound kernels have no shape, only the bytes that they read and write, and those of scans
/// besides their FLOPs and, in m, the chunks that they compute one after the other (0: all at once).
struct Kernel {
  std::string_view name;  // name of the operator; a string literal
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0;  // read and written in device memory
  std::int64_t flops = 0;
  bool accumulates = false;  // a GEMM that adds to its result in fp32
  bool one_by_one = false;   // `batch` GEMMs that are launched separately: those of experts
  AttentionExtent attention;
  ExpertTokens expert_tokens;  // if experts have unequal tokens; then m (weight gradients: k) is their mean, rounded up
  auto operator<=>(const Kernel&) const = default;
};

/// Returns a GEMM whose result is written in bf16. `dtype` is the type of its inputs.
Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::bf16);
/// Returns a weight gradient: a GEMM that adds to an fp32 gradient [m,n], which it reads and writes.
Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                       Dtype dtype = Dtype::bf16);
/// The same for `batch` experts, each with its own weights: one GEMM for each, launched on a few streams, as
/// Transformer Engine runs them (GroupedLinear). SimuMax' grouped GEMMs of 20 to 256 experts take what their GEMMs take
/// one by one.
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
/// The shape of fused attention: `batch` is samples times heads, `key_batch` samples times heads of keys; without a
/// mask, pairs are queries times keys, with a causal one half of them.
struct AttentionShape {
  std::int64_t queries = 0, keys = 0, pairs = 0, width = 0, value_width = 0, batch = 0, key_batch = 0, window = 0;
  bool cut_by_mask = true;
};
/// Returns a fused attention kernel. Forward, it reads Q, K and V and writes the output, with 2 GEMMs; backward, it
/// reads these and the output's gradient and writes three gradients, with 5 GEMMs (Dao et al. 2022, algorithms 1 and
/// 4).
Kernel fused_attention(std::string_view name, KernelClass kernel_class, const AttentionShape& shape,
                       Dtype dtype = Dtype::bf16);
/// Returns a kernel without a matrix product, which reads and writes `bytes`.
Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype = Dtype::bf16);

/// Returns a kernel of a scan by chunks, of the class state_space or delta_rule, which reads and writes `bytes`.
/// `serial_chunks` are those of one sequence if each waits for the one before it, otherwise 0.
Kernel chunked_scan(std::string_view name, KernelClass kernel_class, std::int64_t bytes, std::int64_t flops,
                    std::int64_t serial_chunks = 0);

/// Returns the time of a byte in picoseconds, at the memory bandwidth that kernels reach. Throws as modelled_time().
double ps_per_byte(const Gpu& gpu);

/// Returns the kernel's time on `gpu` by the cost model, rounded half up to a picosecond. Throws InputError, which
/// names the missing option, if the model needs a value of the GPU that is unknown. `ratio` multiplies the time of a
/// GEMM, but not its launches.
Time modelled_time(const Kernel& kernel, const Gpu& gpu, double ratio = 1);

}  // namespace manyworlds::core::compute
