// Kernels and the host against times worked out by hand.
#include "core/compute/kernel.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/error.hpp"
#include "core/compute/gemm.hpp"
#include "core/compute/host.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::compute;

namespace {
Gpu no_launch() {
  Gpu gpu = workload::round_gpu();
  gpu.launch_us = 0;
  return gpu;
}
}  // namespace

TEST_CASE("a GEMM whose tiles fill every wave takes its FLOPs over the achieved peak, plus the launch") {
  const Kernel kernel = gemm("square", 4'096, 4'096, 4'096);
  CHECK(kernel.flops == 137'438'953'472);
  CHECK(kernel.bytes == 3 * 2 * 4'096 * 4'096);
  Gpu gpu = no_launch();
  gpu.memory_gb_per_s = 1e9;
  gpu.compute_units = 128;  // 512 tiles of 256 x 128 in four waves
  // 137438953472 / 200e12 s = 687.19476736 us
  CHECK(modelled_time(kernel, gpu) == 687'194'767);
  gpu.launch_us = 2;
  CHECK(modelled_time(kernel, gpu) == 687'194'767 + 2'000'000);
}

TEST_CASE("a GEMM takes whole waves where the idle units of the last are lost") {
  Gpu gpu = no_launch();
  gpu.compute_units = 32;
  gpu.memory_gb_per_s = 1e9;      // memory is no limit
  gpu.gemm.front().tiles = 0b10;  // 256 x 128
  // A wave of 256 x 128 tiles: 2 x 256 x 128 x 65536 FLOPs at 200e12 / 32 per second.
  const double wave_ps = 2.0 * 256 * 128 * 65'536 / (200.0 / 32);
  CHECK(modelled_time(gemm("full", 2'048, 512, 65'536), gpu) == Approx(wave_ps));
  // Two more columns are 8 more tiles of that size, 40 for 32 units: too many for K to be split.
  CHECK(modelled_time(gemm("over", 2'048, 514, 65'536), gpu) == Approx(2 * wave_ps));
  gpu.gemm.front().wave_loss = 0.25;  // 40 tiles fill 1.25 waves, and a quarter of the other 0.75 is lost
  CHECK(modelled_time(gemm("over", 2'048, 514, 65'536), gpu) == Approx((1.25 + 0.25 * 0.75) * wave_ps));
}

TEST_CASE("a GEMM of few tiles splits K, and adds up its parts through the cache") {
  Gpu gpu = no_launch();
  gpu.compute_units = 32;
  gpu.memory_gb_per_s = 1e9;
  GemmRates& rates = gpu.gemm.front();
  rates.tiles = 0b10;  // 256 x 128
  rates.max_split = 4;
  const double tile_ps = 2.0 * 256 * 128 * 65'536 / (200.0 / 32);
  CHECK(modelled_time(gemm("one tile", 256, 128, 65'536), gpu) == Approx(tile_ps / 4));
  rates.max_split = 1;
  CHECK(modelled_time(gemm("one tile", 256, 128, 65'536), gpu) == Approx(tile_ps));
}

TEST_CASE("a tile costs its prologue as so much more of K, and its epilogue in clocks") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1e9;
  GemmRates& rates = gpu.gemm.front();
  rates.tiles = 0b10;
  const auto kernel = gemm("square", 4'096, 4'096, 4'096);
  const Time without = modelled_time(kernel, gpu);
  rates.prologue_k = 512;  // an eighth of K
  CHECK(modelled_time(kernel, gpu) == Approx(1.125 * static_cast<double>(without)));
  rates.prologue_k = 0;
  rates.epilogue_clocks = 1'000;  // of each of four waves, at 1 GHz
  CHECK(modelled_time(kernel, gpu) == Approx(static_cast<double>(without) + 4e6));
}

TEST_CASE("loop, loads and memory of a GEMM overlap, which costs a little where they are equally long") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1e9;
  GemmRates& rates = gpu.gemm.front();
  rates.tiles = 0b10;
  const auto kernel = gemm("square", 4'096, 4'096, 4'096);
  const auto loop_ps = static_cast<double>(modelled_time(kernel, gpu));
  // Four waves of 384 edges x 4096 x 2 bytes a unit: as long as the loop at this many bytes per clock of 1 ns.
  rates.load_bytes_per_clock = 4.0 * 384 * 4'096 * 2 / (loop_ps * 1e-3);
  CHECK(modelled_time(kernel, gpu) == Approx(loop_ps * std::sqrt(std::sqrt(2.0))));
}

TEST_CASE("the power limit slows long kernels of a benchmark, and all kernels of a step") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1e9;
  GemmRates& rates = gpu.gemm.front();
  const auto kernel = gemm("square", 4'096, 4'096, 4'096);
  const double full_ps = gemm_ps(kernel, rates, gpu, PowerState::burst);
  rates.throttle = 0.2;
  rates.throttle_ms = full_ps * 1e-9;  // half of it shows
  CHECK(gemm_ps(kernel, rates, gpu, PowerState::burst) == Approx(1.1 * full_ps));
  gpu.sustained_rate = 0.8;
  CHECK(gemm_ps(kernel, rates, gpu, PowerState::sustained) == Approx(1.2 * full_ps / 0.8));
  CHECK(static_cast<double>(modelled_time(kernel, gpu)) == Approx(1.2 * full_ps / 0.8));
}

TEST_CASE("the power limit does not slow a GEMM that waits for the memory") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1;
  gpu.gemm.front().throttle = 0.2;
  gpu.sustained_rate = 0.5;
  const auto kernel = gemm("row", 1, 4'096, 4'096);
  const double read_ps = static_cast<double>(kernel.bytes) * 1e3 / gpu.gemm.front().memory_efficiency;
  for (const PowerState power : {PowerState::burst, PowerState::sustained})
    CHECK(gemm_ps(kernel, gpu.gemm.front(), gpu, power) == Approx(read_ps).epsilon(1e-3));
}

TEST_CASE("narrow inputs make a GEMM's main loop faster by their peaks, each at its efficiency") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1e9;
  gpu.gemm[1].efficiency = 0.4;
  gpu.gemm[2].efficiency = 0.25;
  const auto with = [&](Dtype dtype) {
    return static_cast<double>(modelled_time(gemm("g", 4'096, 4'096, 4'096, dtype), gpu));
  };
  CHECK(with(Dtype::bf16) / with(Dtype::fp8) == Approx(2 * 0.4 / 0.5));
  CHECK(with(Dtype::bf16) / with(Dtype::fp4) == Approx(4 * 0.25 / 0.5));
  CHECK(gemm("g", 8, 8, 8, Dtype::fp8).bytes == 2 * 64 + 2 * 64);
  CHECK(gemm("g", 8, 8, 8, Dtype::fp4).bytes == 64 + 2 * 64);
}

TEST_CASE("a thin GEMM is bound by its bytes") {
  const Kernel kernel = gemm("thin", 1, 8'192, 8'192);
  // (8192 + 8192^2 + 8192) x 2 bytes at 1000 GB/s = 1 ps a thousandth: 134250496 bytes in 134250496 ps
  CHECK(kernel.bytes == 134'250'496);
  Gpu gpu = no_launch();
  gpu.matrix_tflops = 1e6;
  CHECK(modelled_time(kernel, gpu) == Approx(134'250'496));
}

TEST_CASE("a kernel of a scan takes its bytes at half the bandwidth, its FLOPs at its share, or its chunks in turn") {
  Gpu gpu = no_launch();
  gpu.matrix_tflops = 100, gpu.state_space_efficiency = 0.1, gpu.delta_rule_efficiency = 0.2;
  gpu.memory_gb_per_s = 1'000;
  const auto us = [&](KernelClass kernel_class, std::int64_t bytes, std::int64_t flops, std::int64_t chunks) {
    return static_cast<double>(modelled_time(chunked_scan("s", kernel_class, bytes, flops, chunks), gpu)) * 1e-6;
  };
  CHECK(us(KernelClass::state_space, 5'000'000, 0, 0) == Approx(10));
  CHECK(us(KernelClass::state_space, 5'000'000, 200'000'000, 0) == Approx(20));
  CHECK(us(KernelClass::delta_rule, 5'000'000, 240'000'000, 0) == Approx(12));
  CHECK(us(KernelClass::delta_rule, 5'000'000, 240'000'000, 10) == Approx(17));
  gpu.launch_us = 2;
  CHECK(us(KernelClass::delta_rule, 5'000'000, 240'000'000, 10) == Approx(19));
}

TEST_CASE("weight gradients that add to fp32 have a slower main loop") {
  Gpu gpu = no_launch();
  gpu.compute_units = 128;
  gpu.memory_gb_per_s = 1e9;
  const auto forward = static_cast<double>(modelled_time(gemm("g", 4'096, 4'096, 4'096), gpu));
  CHECK(modelled_time(weight_gradient("g", 4'096, 4'096, 4'096), gpu) == Approx(1.05 * forward));
}

TEST_CASE("the host's time is that of its kernels and collectives") {
  const LaunchTimes launch{10, 20};
  CHECK(launch.of({8, 1}) == 100 * kMicrosecond);
  CHECK(launch.of({}) == 0);
}

TEST_CASE("a weight gradient reads and writes its result in fp32") {
  CHECK(weight_gradient("w", 3, 5, 7).bytes == 2 * (3 * 7 + 7 * 5) + 8 * 3 * 5);
  CHECK(weight_gradient("w", 3, 5, 7).flops == 2 * 3 * 5 * 7);
}

TEST_CASE("kernel times are rounded half up to a picosecond") {
  Gpu gpu = no_launch();
  gpu.memory_efficiency = 1;
  gpu.memory_gb_per_s = 400;  // a byte takes 2.5 ps
  CHECK(modelled_time(memory_bound("copy", 1), gpu) == 3);
  CHECK(modelled_time(memory_bound("copy", 2), gpu) == 5);
  gpu.memory_gb_per_s = 800;  // 1.25 ps
  CHECK(modelled_time(memory_bound("copy", 1), gpu) == 1);
}

TEST_CASE("a kernel that needs a figure nobody gave is bad input that names the figure") {
  Gpu gpu = workload::round_gpu();
  gpu.matrix_tflops = 0;
  CHECK_NOTHROW(modelled_time(memory_bound("copy", 1), gpu));
  CHECK_THROWS_AS(modelled_time(gemm("g", 1, 1, 1), gpu), InputError);
  CHECK_THROWS_WITH(modelled_time(gemm("g", 1, 1, 1), gpu), Catch::Contains("matrix_tflops"));
  gpu.memory_gb_per_s = 0;
  CHECK_THROWS_WITH(modelled_time(memory_bound("copy", 1), gpu), Catch::Contains("memory_gb_per_s"));
}

TEST_CASE("kernels are the same when name, type, shape, bytes and FLOPs are") {
  CHECK(gemm("qkv", 1, 2, 3) == gemm("qkv", 1, 2, 3));
  CHECK(gemm("qkv", 1, 2, 3) != gemm("qkv", 1, 3, 2));
  CHECK(gemm("qkv", 1, 2, 3) != gemm("mlp", 1, 2, 3));
  CHECK(memory_bound("adam", 8, Dtype::fp32) != memory_bound("adam", 8, Dtype::bf16));
}
