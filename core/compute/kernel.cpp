// Construction of kernels and their cost. Only + - x / on doubles are used: the results have the same bits on every
// machine.
#include "core/compute/kernel.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/compute/attention.hpp"
#include "core/compute/gemm.hpp"
#include "core/compute/scan_classes.hpp"

namespace manyworlds::core::compute {
namespace {

constexpr std::int64_t kBf16Bytes = 2, kFp32ReadWriteBytes = 8;

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
  kernel.accumulates = result_bytes == kFp32ReadWriteBytes;
  return kernel;
}

// Returns `value`. Throws InputError, which names the option `key`, if the value is unknown (0).
double require_known(double value, std::string_view key) {
  if (value > 0) return value;
  throw InputError(fmt::format("gpu: {} is unknown for this GPU, but its kernels need it: set a value above 0", key));
}

bool is_forward(KernelClass kernel_class) {
  return kernel_class == KernelClass::flash_forward || kernel_class == KernelClass::flash2_forward ||
         kernel_class == KernelClass::cudnn_forward;
}

int launches_of(KernelClass kernel_class) {
  const bool attention =
      kernel_class != KernelClass::gemm && kernel_class != KernelClass::memory_bound && !is_scan(kernel_class);
  return attention && !is_forward(kernel_class) ? kAttentionBackwardLaunches : 1;
}

}  // namespace

std::int64_t ExpertTokens::tiles_of(std::int64_t height) const {
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if (kTileHeights[i] == height) return tiles[i];
  MANYWORLDS_CHECK(false, "no tiles of height {} are counted", height);
}

Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  return matrix_product(name, m, n, k, 1, dtype, kBf16Bytes);
}

Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  return matrix_product(name, m, n, k, 1, dtype, kFp32ReadWriteBytes);
}

Kernel grouped_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                    Dtype dtype) {
  Kernel kernel = matrix_product(name, m, n, k, batch, dtype, kBf16Bytes);
  kernel.one_by_one = true;
  return kernel;
}

Kernel grouped_weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                               std::int64_t batch, Dtype dtype) {
  Kernel kernel = matrix_product(name, m, n, k, batch, dtype, kFp32ReadWriteBytes);
  kernel.one_by_one = true;
  return kernel;
}

namespace {

ExpertTokens count_expert_tokens(std::span<const std::int64_t> tokens) {
  ExpertTokens result;
  for (const std::int64_t each : tokens) {
    result.tokens += each;
    result.max_tokens = std::max(result.max_tokens, each);
    for (std::size_t i = 0; i < result.tiles.size(); ++i)
      result.tiles[i] += (each + ExpertTokens::kTileHeights[i] - 1) / ExpertTokens::kTileHeights[i];
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
  kernel.expert_tokens.tiles = {};  // the sum runs over the tokens, so no tile rows depend on them
  kernel.bytes = expert_tokens.tokens * (m + n) * half_bytes(dtype) / 2 + 8 * active.experts * m * n;
  kernel.flops = 2 * expert_tokens.tokens * m * n;
  return kernel;
}

Kernel batched_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return matrix_product(name, m, n, k, batch, Dtype::bf16, kBf16Bytes);
}

Kernel fused_attention(std::string_view name, KernelClass kernel_class, const AttentionShape& shape, Dtype dtype) {
  const bool forward = is_forward(kernel_class);
  Kernel kernel = make_kernel(name, kernel_class, dtype, shape.queries, shape.keys, shape.width, shape.batch);
  kernel.attention = {shape.pairs, shape.value_width, shape.key_batch, shape.window, shape.cut_by_mask};
  const std::int64_t width = shape.width + shape.value_width;
  const std::int64_t elements = shape.batch * shape.queries * width + shape.key_batch * shape.keys * width;
  kernel.bytes = elements * half_bytes(dtype) / 2 * (forward ? 1 : 2);
  // Forward: scores and values. Backward: scores again, two gradients of the width of scores and two of that of values.
  kernel.flops = 2 * shape.batch * shape.pairs * (forward ? width : 3 * shape.width + 2 * shape.value_width);
  return kernel;
}

Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype) {
  Kernel kernel;
  kernel.name = name;
  kernel.dtype = dtype;
  kernel.bytes = bytes;
  return kernel;
}

Kernel chunked_scan(std::string_view name, KernelClass kernel_class, std::int64_t bytes, std::int64_t flops,
                    std::int64_t serial_chunks) {
  MANYWORLDS_CHECK(is_scan(kernel_class), "a scan of the class {}", static_cast<int>(kernel_class));
  Kernel kernel = memory_bound(name, bytes);
  kernel.kernel_class = kernel_class;
  kernel.flops = flops;
  kernel.m = serial_chunks;
  return kernel;
}

namespace {

// The kernels of mamba_ssm and flash-linear-attention reach half of the memory bandwidth, and a thread block computes a
// chunk of one head after the other in 1.7 us on A100, H200 and GB200 alike (docs/facts/scans.md, section 3).
constexpr double kScanBandwidth = 0.5, kSerialChunkUs = 1.7;

/// Throws InputError, which names the option, if the model of a kernel needs a value that is unknown.
void require_known(KernelClass kernel_class, const Gpu& gpu) {
  if (kernel_class == KernelClass::memory_bound) return;
  require_known(gpu.matrix_tflops, "matrix_tflops");
  if (is_scan(kernel_class)) return;
  require_known(static_cast<double>(gpu.compute_units), "compute_units");
}

double corrected_gemm_ps(const Kernel& kernel, const Gpu& gpu, double ratio) {
  const double modelled = gemm_ps(kernel, gemm_rates(kernel.dtype, gpu), gpu, PowerState::sustained);
  if (ratio == 1) return modelled;
  const double launches =
      kernel.one_by_one ? static_cast<double>((kernel.batch - 1) * kMicrosecond) * gpu.launch_us : 0;
  return (modelled - launches) * ratio + launches;
}

/// Picoseconds of a scan's kernel: of its bytes, its FLOPs or its chunks, whatever takes longest.
double scan_ps(const Kernel& kernel, const Gpu& gpu) {
  const double efficiency =
      kernel.kernel_class == KernelClass::state_space ? gpu.state_space_efficiency : gpu.delta_rule_efficiency;
  const double moves = static_cast<double>(kernel.bytes) * 1000 / (gpu.memory_gb_per_s * kScanBandwidth);
  const double computes = static_cast<double>(kernel.flops) / (gpu.matrix_tflops * efficiency);
  const double waits = static_cast<double>(kernel.m * kMicrosecond) * kSerialChunkUs;
  return std::max({moves, computes, waits});
}

double kernel_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte, double ratio) {
  if (is_scan(kernel.kernel_class)) return scan_ps(kernel, gpu);
  if (kernel.kernel_class == KernelClass::memory_bound) return static_cast<double>(kernel.bytes) * ps_per_byte;
  if (kernel.kernel_class == KernelClass::gemm) return corrected_gemm_ps(kernel, gpu, ratio);
  if (is_forward(kernel.kernel_class))
    return attention_forward_ps(kernel, attention_rates(kernel.kernel_class, gpu), gpu, ps_per_byte);
  return attention_backward_ps(kernel, gpu, ps_per_byte);
}

}  // namespace

double ps_per_byte(const Gpu& gpu) {
  // A rate of 1 GB/s moves one byte in 1000 ps.
  return 1000.0 / (require_known(gpu.memory_gb_per_s, "memory_gb_per_s") *
                   require_known(gpu.memory_efficiency, "memory_efficiency"));
}

Time modelled_time(const Kernel& kernel, const Gpu& gpu, double ratio) {
  const double per_byte = ps_per_byte(gpu);
  require_known(kernel.kernel_class, gpu);
  const Time launch = round_half_up(gpu.launch_us * static_cast<double>(kMicrosecond));
  const Time total_ps =
      round_half_up(kernel_ps(kernel, gpu, per_byte, ratio)) + launches_of(kernel.kernel_class) * launch;
  return gpu.speed_factor == 1 ? total_ps : round_half_up(static_cast<double>(total_ps) / gpu.speed_factor);
}

}  // namespace manyworlds::core::compute
