// The roofline against times worked out by hand.
#include "core/compute/kernel.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::compute;

namespace {
Gpu no_launch() {
  Gpu gpu = workload::round_gpu();
  gpu.launch_us = 0;
  return gpu;
}
}  // namespace

TEST_CASE("a large GEMM takes its FLOPs over the achieved peak, plus the launch") {
  const Kernel kernel = gemm("square", 4'096, 4'096, 4'096);
  CHECK(kernel.flops == 137'438'953'472);
  CHECK(kernel.bytes == 3 * 2 * 4'096 * 4'096);
  // 137438953472 / 200e12 s = 687.19476736 us
  CHECK(cost(kernel, no_launch()) == 687'194'767);
  CHECK(cost(kernel, workload::round_gpu()) == 687'194'767 + 2'000'000);
}

TEST_CASE("a thin GEMM is bound by its bytes") {
  const Kernel kernel = gemm("thin", 1, 8'192, 8'192);
  // (8192 + 8192^2 + 8192) x 2 bytes at 1000 GB/s = 1 ps a thousandth: 134250496 bytes in 134250496 ps
  CHECK(kernel.bytes == 134'250'496);
  CHECK(cost(kernel, no_launch()) == 134'250'496);
}

TEST_CASE("attention GEMMs use the attention core's share of the peak") {
  const Kernel kernel = attention_gemm("scores", 2'048, 2'048, 1'024, 16);
  CHECK(kernel.flops == 2LL * 16 * 2'048 * 2'048 * 1'024);
  CHECK(cost(kernel, no_launch()) == 1'374'389'535);  // 137438953472 / 100e12 s, rounded up from .72
}

TEST_CASE("a weight gradient reads and writes its result in fp32") {
  CHECK(weight_gradient("w", 3, 5, 7).bytes == 2 * (3 * 7 + 7 * 5) + 8 * 3 * 5);
  CHECK(weight_gradient("w", 3, 5, 7).flops == 2 * 3 * 5 * 7);
}

TEST_CASE("kernel times are rounded half up to a picosecond") {
  Gpu gpu = no_launch();
  gpu.memory_efficiency = 1;
  gpu.memory_gb_per_s = 400;  // a byte takes 2.5 ps
  CHECK(cost(memory_bound("copy", 1), gpu) == 3);
  CHECK(cost(memory_bound("copy", 2), gpu) == 5);
  gpu.memory_gb_per_s = 800;  // 1.25 ps
  CHECK(cost(memory_bound("copy", 1), gpu) == 1);
}

TEST_CASE("a kernel that needs a figure nobody gave is bad input that names the figure") {
  Gpu gpu = workload::round_gpu();
  gpu.matrix_tflops = 0;
  CHECK_NOTHROW(cost(memory_bound("copy", 1), gpu));
  CHECK_THROWS_AS(cost(gemm("g", 1, 1, 1), gpu), InputError);
  CHECK_THROWS_WITH(cost(gemm("g", 1, 1, 1), gpu), Catch::Contains("matrix_tflops"));
  gpu.memory_gb_per_s = 0;
  CHECK_THROWS_WITH(cost(memory_bound("copy", 1), gpu), Catch::Contains("memory_gb_per_s"));
}

TEST_CASE("kernels are the same when name, type, shape, bytes and FLOPs are") {
  CHECK(gemm("qkv", 1, 2, 3) == gemm("qkv", 1, 2, 3));
  CHECK(gemm("qkv", 1, 2, 3) != gemm("qkv", 1, 3, 2));
  CHECK(gemm("qkv", 1, 2, 3) != gemm("mlp", 1, 2, 3));
  CHECK(memory_bound("adam", 8, Dtype::fp32) != memory_bound("adam", 8, Dtype::bf16));
}
