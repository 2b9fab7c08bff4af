// Construction of kernels and their cost. Only + - x / on doubles are used: the results have the same bits on every
// machine.
#include "core/compute/kernel.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/compute/gemm.hpp"

namespace manyworlds::core::compute {
namespace {

constexpr std::int64_t kBf16Bytes = 2;

// Bytes of an element in units of half a byte, because fp4 has half a byte.
std::int64_t half_bytes(Dtype dtype) {
  return dtype == Dtype::fp4 ? 1 : dtype == Dtype::fp8 ? 2 : dtype == Dtype::bf16 ? 4 : 8;
}

Kernel make_kernel(std::string_view name, KernelClass kernel_class, Dtype dtype, std::int64_t m, std::int64_t n,
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

/// Returns a GEMM that writes `result_bytes` per element of the result.
Kernel matrix_product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                      Dtype dtype, std::int64_t result_bytes) {
  Kernel kernel = make_kernel(name, KernelClass::gemm, dtype, m, n, k, batch);
  kernel.bytes = batch * ((m * k + k * n) * half_bytes(dtype) / 2 + result_bytes * m * n);
  kernel.flops = 2 * batch * m * n * k;
  return kernel;
}

// Returns `value`. Throws InputError, which names the option `key`, if the value is unknown (0).
double require_known(double value, std::string_view key) {
  if (value > 0) return value;
  throw InputError(fmt::format("gpu: {} is unknown for this GPU, but its kernels need it: set a value above 0", key));
}

double attention_efficiency(KernelClass kernel_class, const Gpu& gpu) {
  switch (kernel_class) {
    case KernelClass::flash_forward:
      return require_known(gpu.flash_forward_efficiency, "flash_forward_efficiency");
    case KernelClass::flash_backward:
      return require_known(gpu.flash_backward_efficiency, "flash_backward_efficiency");
    case KernelClass::cudnn_forward:
      return require_known(gpu.cudnn_forward_efficiency, "cudnn_forward_efficiency");
    default:
      return require_known(gpu.cudnn_backward_efficiency, "cudnn_backward_efficiency");
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

ExpertTokens count_expert_tokens(std::span<const std::int64_t> tokens) {
  ExpertTokens result;
  for (const std::int64_t each : tokens) {
    result.tokens += each;
    result.max_tokens = std::max(result.max_tokens, each);
    result.tiles_64 += (each + 63) / 64;
    result.tiles_128 += (each + 127) / 128;
    result.tiles_256 += (each + 255) / 256;
  }
  return result;
}

/// The experts with tokens: their number, their mean tokens (rounded up), and whether their tokens are unequal.
struct ActiveExperts {
  std::int64_t experts = 0, mean = 0;
  bool unequal = false;
};

ActiveExperts active_experts(std::span<const std::int64_t> tokens, const ExpertTokens& expert_tokens) {
  MANYWORLDS_CHECK(expert_tokens.tokens > 0, "a GEMM of {} experts without tokens", tokens.size());
  ActiveExperts result;
  for (const std::int64_t each : tokens) {
    result.experts += each > 0;
    result.unequal |= each > 0 && each < expert_tokens.max_tokens;
  }
  result.mean = (expert_tokens.tokens + result.experts - 1) / result.experts;
  return result;
}

}  // namespace

Kernel grouped_gemm(std::string_view name, std::span<const std::int64_t> tokens, std::int64_t n, std::int64_t k,
                    Dtype dtype) {
  const ExpertTokens expert_tokens = count_expert_tokens(tokens);
  const ActiveExperts active = active_experts(tokens, expert_tokens);
  Kernel kernel = grouped_gemm(name, active.mean, n, k, active.experts, dtype);
  if (!active.unequal) return kernel;
  kernel.expert_tokens = expert_tokens;
  kernel.bytes = (expert_tokens.tokens * k + active.experts * k * n) * half_bytes(dtype) / 2 +
                 kBf16Bytes * expert_tokens.tokens * n;
  kernel.flops = 2 * expert_tokens.tokens * n * k;
  return kernel;
}

Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n,
                               std::span<const std::int64_t> tokens, Dtype dtype) {
  const ExpertTokens expert_tokens = count_expert_tokens(tokens);
  const ActiveExperts active = active_experts(tokens, expert_tokens);
  Kernel kernel = grouped_weight_gradient(name, m, n, active.mean, active.experts, dtype);
  if (!active.unequal) return kernel;
  kernel.expert_tokens = expert_tokens;
  kernel.expert_tokens.tiles_64 = kernel.expert_tokens.tiles_128 = kernel.expert_tokens.tiles_256 =
      0;  // the sum runs over the tokens, so no tile rows depend on them
  kernel.bytes = expert_tokens.tokens * (m + n) * half_bytes(dtype) / 2 + 8 * active.experts * m * n;
  kernel.flops = 2 * expert_tokens.tokens * m * n;
  return kernel;
}

Kernel batched_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return matrix_product(name, m, n, k, batch, Dtype::bf16, kBf16Bytes);
}

Kernel fused_attention(std::string_view name, KernelClass kernel_class, std::int64_t queries, std::int64_t keys,
                       std::int64_t pairs, std::int64_t width, std::int64_t value_width, std::int64_t batch) {
  const bool forward = kernel_class == KernelClass::flash_forward || kernel_class == KernelClass::cudnn_forward;
  Kernel kernel = make_kernel(name, kernel_class, Dtype::bf16, queries, keys, width, batch);
  const std::int64_t tensors = queries * (width + value_width) + keys * (width + value_width);
  kernel.bytes = kBf16Bytes * batch * (forward ? tensors : 2 * tensors);
  // Forward: scores and values. Backward: scores again, two gradients of the width of scores and two of that of values.
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

Time modelled_time(const Kernel& kernel, const Gpu& gpu) {
  // A rate of 1 GB/s moves one byte in 1000 ps.
  const double ps_per_byte = 1000.0 / (require_known(gpu.memory_gb_per_s, "memory_gb_per_s") *
                                       require_known(gpu.memory_efficiency, "memory_efficiency"));
  double ps = static_cast<double>(kernel.bytes) * ps_per_byte;
  if (kernel.kernel_class != KernelClass::memory_bound) {
    require_known(gpu.matrix_tflops, "matrix_tflops");
    if (kernel.kernel_class == KernelClass::gemm) {
      require_known(static_cast<double>(gpu.compute_units), "compute_units");
      require_known(gpu.gemm_efficiency, "gemm_efficiency");
      ps = gemm_ps(kernel, gpu, ps_per_byte);
    } else {
      const double rate = gpu.matrix_tflops * attention_efficiency(kernel.kernel_class, gpu);
      ps = std::max(ps, static_cast<double>(kernel.flops) / rate);
    }
  }
  const Time total_ps = round_half_up(ps) + round_half_up(gpu.launch_us * static_cast<double>(kMicrosecond));
  return gpu.speed_factor == 1 ? total_ps : round_half_up(static_cast<double>(total_ps) / gpu.speed_factor);
}

}  // namespace manyworlds::core::compute
