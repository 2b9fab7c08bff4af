// Kernels by shape and the roofline that prices them. Only + - x / on doubles: the same bits on every machine.
#include "core/compute/kernel.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace manyworlds::core::compute {
namespace {

constexpr std::int64_t kBf16Bytes = 2;

Kernel shaped(std::string_view name, KernelClass kernel_class, std::int64_t m, std::int64_t n, std::int64_t k,
              std::int64_t batch) {
  Kernel kernel;
  kernel.name = name;
  kernel.kernel_class = kernel_class;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.batch = batch;
  kernel.bytes = kBf16Bytes * batch * (m * k + k * n + m * n);
  kernel.flops = 2 * batch * m * n * k;
  return kernel;
}

double known(double figure, std::string_view key) {
  if (figure > 0) return figure;
  throw InputError(
      fmt::format("gpu: {} is not known for this GPU and its kernels need it: give a figure above 0", key));
}

Time round_half_up(double ps) {
  return static_cast<Time>(ps + 0.5);
}

}  // namespace

Kernel gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k) {
  return shaped(name, KernelClass::gemm, m, n, k, 1);
}

Kernel weight_gradient(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel = shaped(name, KernelClass::gemm, m, n, k, 1);
  kernel.bytes = kBf16Bytes * (m * k + k * n) + 8 * m * n;
  return kernel;
}

Kernel attention_gemm(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return shaped(name, KernelClass::attention, m, n, k, batch);
}

Kernel memory_bound(std::string_view name, std::int64_t bytes, Dtype dtype) {
  Kernel kernel;
  kernel.name = name;
  kernel.dtype = dtype;
  kernel.bytes = bytes;
  return kernel;
}

Time cost(const Kernel& kernel, const Gpu& gpu) {
  // 1 GB/s moves a byte in 1000 ps; 1 TFLOP/s does a FLOP in 1 ps.
  const double bandwidth =
      known(gpu.memory_gb_per_s, "memory_gb_per_s") * known(gpu.memory_efficiency, "memory_efficiency");
  double ps = static_cast<double>(kernel.bytes) * 1000.0 / bandwidth;
  if (kernel.kernel_class != KernelClass::memory_bound) {
    const double efficiency = kernel.kernel_class == KernelClass::gemm
                                  ? known(gpu.gemm_efficiency, "gemm_efficiency")
                                  : known(gpu.attention_efficiency, "attention_efficiency");
    const double tflops = known(gpu.matrix_tflops, "matrix_tflops") * efficiency;
    ps = std::max(ps, static_cast<double>(kernel.flops) / tflops);
  }
  return round_half_up(ps) + round_half_up(gpu.launch_us * static_cast<double>(kMicrosecond));
}

}  // namespace manyworlds::core::compute
