// Kernels by shape and what they cost. Only + - x / on doubles: the same bits on every machine.
#include "core/compute/kernel.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/compute/gemm.hpp"

namespace manyworlds::core::compute {
namespace {

constexpr std::int64_t kBf16Bytes = 2;

std::int64_t halves_of_a_byte(Dtype dtype) {
  return dtype == Dtype::fp4 ? 1 : dtype == Dtype::fp8 ? 2 : dtype == Dtype::bf16 ? 4 : 8;
}

Kernel shaped(std::string_view name, KernelClass kernel_class, Dtype dtype, std::int64_t m, std::int64_t n,
              std::int64_t k, std::int64_t batch) {
  Kernel kernel;
  kernel.name = name;
  kernel.kernel_class = kernel_class;
  kernel.dtype = dtype;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.batch = batch;
  return kernel;
}

/// `result_bytes` per element of the result.
Kernel matrix_product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                      Dtype dtype, std::int64_t result_bytes) {
  Kernel kernel = shaped(name, KernelClass::gemm, dtype, m, n, k, batch);
  kernel.bytes = batch * ((m * k + k * n) * halves_of_a_byte(dtype) / 2 + result_bytes * m * n);
  kernel.flops = 2 * batch * m * n * k;
  return kernel;
}

double known(double figure, std::string_view key) {
  if (figure > 0) return figure;
  throw InputError(
      fmt::format("gpu: {} is not known for this GPU and its kernels need it: give a figure above 0", key));
}

double attention_efficiency(KernelClass kernel_class, const Gpu& gpu) {
  switch (kernel_class) {
    case KernelClass::flash_forward:
      return known(gpu.flash_forward_efficiency, "flash_forward_efficiency");
    case KernelClass::flash_backward:
      return known(gpu.flash_backward_efficiency, "flash_backward_efficiency");
    case KernelClass::cudnn_forward:
      return known(gpu.cudnn_forward_efficiency, "cudnn_forward_efficiency");
    default:
      return known(gpu.cudnn_backward_efficiency, "cudnn_backward_efficiency");
  }
}

}  // namespace

Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  return matrix_product(name, m, n, k, 1, dtype, kBf16Bytes);
}

Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  return matrix_product(name, m, n, k, 1, dtype, 8);
}

Kernel grouped_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                    Dtype dtype) {
  return matrix_product(name, m, n, k, batch, dtype, kBf16Bytes);
}

Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                               std::int64_t batch, Dtype dtype) {
  return matrix_product(name, m, n, k, batch, dtype, 8);
}

namespace {

Shares shares_of(std::span<const std::int64_t> tokens) {
  Shares made;
  for (const std::int64_t each : tokens) {
    made.tokens += each;
    made.most = std::max(made.most, each);
    made.tiles_64 += (each + 63) / 64;
    made.tiles_128 += (each + 127) / 128;
    made.tiles_256 += (each + 255) / 256;
  }
  return made;
}

/// Those with tokens, and whether they have unequal numbers.
struct Busy {
  std::int64_t experts = 0, mean = 0;
  bool unequal = false;
};

Busy busy(std::span<const std::int64_t> tokens, const Shares& shares) {
  MANYWORLDS_CHECK(shares.tokens > 0, "a GEMM of {} experts without tokens", tokens.size());
  Busy made;
  for (const std::int64_t each : tokens) {
    made.experts += each > 0;
    made.unequal |= each > 0 && each < shares.most;
  }
  made.mean = (shares.tokens + made.experts - 1) / made.experts;
  return made;
}

}  // namespace

Kernel grouped_gemm(std::string_view name, std::span<const std::int64_t> tokens, std::int64_t n, std::int64_t k,
                    Dtype dtype) {
  const Shares shares = shares_of(tokens);
  const Busy of = busy(tokens, shares);
  Kernel kernel = grouped_gemm(name, of.mean, n, k, of.experts, dtype);
  if (!of.unequal) return kernel;
  kernel.shares = shares;
  kernel.bytes =
      (shares.tokens * k + of.experts * k * n) * halves_of_a_byte(dtype) / 2 + kBf16Bytes * shares.tokens * n;
  kernel.flops = 2 * shares.tokens * n * k;
  return kernel;
}

Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n,
                               std::span<const std::int64_t> tokens, Dtype dtype) {
  const Shares shares = shares_of(tokens);
  const Busy of = busy(tokens, shares);
  Kernel kernel = grouped_weight_gradient(name, m, n, of.mean, of.experts, dtype);
  if (!of.unequal) return kernel;
  kernel.shares = shares;
  kernel.shares.tiles_64 = kernel.shares.tiles_128 = kernel.shares.tiles_256 = 0;  // tokens are what is summed over
  kernel.bytes = shares.tokens * (m + n) * halves_of_a_byte(dtype) / 2 + 8 * of.experts * m * n;
  kernel.flops = 2 * shares.tokens * m * n;
  return kernel;
}

Kernel batched_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return matrix_product(name, m, n, k, batch, Dtype::bf16, kBf16Bytes);
}

Kernel fused_attention(std::string_view name, KernelClass kernel_class, std::int64_t queries, std::int64_t keys,
                       std::int64_t pairs, std::int64_t width, std::int64_t value_width, std::int64_t batch) {
  const bool forward = kernel_class == KernelClass::flash_forward || kernel_class == KernelClass::cudnn_forward;
  Kernel kernel = shaped(name, kernel_class, Dtype::bf16, queries, keys, width, batch);
  const std::int64_t tensors = queries * (width + value_width) + keys * (width + value_width);
  kernel.bytes = kBf16Bytes * batch * (forward ? tensors : 2 * tensors);
  // Scores and values forward; backward scores, two gradients as wide as they are and two as wide as values.
  kernel.flops = 2 * batch * pairs * (forward ? width + value_width : 3 * width + 2 * value_width);
  return kernel;
}

Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype) {
  Kernel kernel;
  kernel.name = name;
  kernel.dtype = dtype;
  kernel.bytes = bytes;
  return kernel;
}

Time cost(const Kernel& kernel, const Gpu& gpu) {
  // 1 GB/s moves a byte in 1000 ps.
  const double ps_per_byte =
      1000.0 / (known(gpu.memory_gb_per_s, "memory_gb_per_s") * known(gpu.memory_efficiency, "memory_efficiency"));
  double ps = static_cast<double>(kernel.bytes) * ps_per_byte;
  if (kernel.kernel_class != KernelClass::memory_bound) {
    known(gpu.matrix_tflops, "matrix_tflops");
    if (kernel.kernel_class == KernelClass::gemm) {
      known(static_cast<double>(gpu.compute_units), "compute_units");
      known(gpu.gemm_efficiency, "gemm_efficiency");
      ps = gemm_ps(kernel, gpu, ps_per_byte);
    } else {
      const double rate = gpu.matrix_tflops * attention_efficiency(kernel.kernel_class, gpu);
      ps = std::max(ps, static_cast<double>(kernel.flops) / rate);
    }
  }
  const Time whole = round_half_up(ps) + round_half_up(gpu.launch_us * static_cast<double>(kMicrosecond));
  return gpu.pace == 1 ? whole : round_half_up(static_cast<double>(whole) / gpu.pace);
}

}  // namespace manyworlds::core::compute
