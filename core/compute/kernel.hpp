// One GPU kernel and what it costs: a roofline over peak FLOP rate and memory bandwidth (Williams et al. 2009), with
// the share of each that the GPU reaches, and the launch overhead. cost() is the seam a better model replaces.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "core/compute/gpu.hpp"
#include "core/units.hpp"

namespace manyworlds::core::compute {

enum class KernelClass : std::uint8_t { gemm, attention, memory_bound };
enum class Dtype : std::uint8_t { bf16, fp32 };

/// Everything a cost model may look at, and so the content of a kernel's key. A GEMM is C[m,n] = A[m,k] B[k,n],
/// `batch` times; memory-bound kernels have no shape, only the bytes they read and write.
struct Kernel {
  std::string_view name;  // of the operator; a string literal
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0;  // read and written in device memory
  std::int64_t flops = 0;
  auto operator<=>(const Kernel&) const = default;
};

/// A GEMM in bf16 whose result is written in bf16.
Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k);
/// A weight gradient: a GEMM that adds to an fp32 gradient [m,n] (read and written).
Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k);
/// A batched GEMM of the attention core.
Kernel attention_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);
Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype = Dtype::bf16);

/// Time on `gpu`, rounded half up to a picosecond. InputError names a figure of the GPU that is absent.
Time cost(const Kernel& kernel, const Gpu& gpu);

}  // namespace manyworlds::core::compute
