// Measured shapes of GEMMs: exact on the grid, by inverse distance between its lines, and the model far away.
#include "core/compute/gemm_shapes.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "core/compute/measured.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::compute;

namespace {

/// A grid of two lines in each dimension.
std::vector<GemmShapes::Point> cube() {
  std::vector<GemmShapes::Point> points;
  for (const std::int64_t m : {1'024, 2'048})
    for (const std::int64_t n : {1'024, 2'048})
      for (const std::int64_t k : {1'024, 2'048})
        points.push_back({m, n, k, static_cast<std::uint16_t>(80 + m / 1'024 * 10 + n / 1'024 + k / 1'024)});
  return points;
}

Gpu gpu_with(const std::vector<GemmShapes::Point>& points) {
  Gpu gpu = workload::round_gpu();
  MeasuredShapes shapes;
  shapes.gemm[0].emplace(points);
  gpu.shapes = std::make_shared<const MeasuredShapes>(std::move(shapes));
  return gpu;
}

}  // namespace

TEST_CASE("a shape that was measured has its own ratio") {
  const GemmShapes shapes(cube());
  for (const GemmShapes::Point& point : cube()) {
    const auto found = shapes.at(point.m, point.n, point.k);
    CHECK(found.ratio == point.percent / 100.0);
    CHECK(found.basis == TimeBasis::measured);
  }
}

TEST_CASE("between measured shapes the ratio is a mean by inverse distance") {
  const GemmShapes shapes({{1'024, 4'096, 4'096, 90}, {2'048, 4'096, 4'096, 120}});
  // Logarithms are linear between powers of 2: 1,280 is a quarter of the way.
  const double near = 1 / std::pow(0.25 * 0.25 + 0.01, 2), far = 1 / std::pow(0.75 * 0.75 + 0.01, 2);
  const auto found = shapes.at(1'280, 4'096, 4'096);
  CHECK(found.ratio == Approx((1 + 0.9 * near + 1.2 * far) / (1 + near + far)));
  CHECK(found.basis == TimeBasis::interpolated);
  // A factor of 2 in n counts as 1.5, in K as half.
  CHECK(shapes.at(1'024, 8'192, 4'096).ratio == Approx((1 + 0.9 / std::pow(2.26, 2) + 1.2 / std::pow(3.26, 2)) /
                                                       (1 + 1 / std::pow(2.26, 2) + 1 / std::pow(3.26, 2))));
  CHECK(shapes.at(1'024, 4'096, 8'192).ratio > 0.91);
  CHECK(shapes.at(1'024, 4'096, 8'192).ratio < shapes.at(1'024, 8'192, 4'096).ratio);
}

TEST_CASE("far from all that was measured the model is alone") {
  const GemmShapes shapes(cube());
  const auto found = shapes.at(1 << 20, 16, 1 << 20);
  CHECK(found.ratio == Approx(1).epsilon(0.01));
  CHECK(found.basis == TimeBasis::modelled);
}

TEST_CASE("a look-up may leave out a shape, or all of its m or n") {
  const GemmShapes shapes({{1'024, 1'024, 1'024, 50}, {1'024, 2'048, 1'024, 150}, {2'048, 1'024, 1'024, 150}});
  CHECK(shapes.at(1'024, 1'024, 1'024).ratio == 0.5);
  const double by_m = 1 / std::pow(1.01, 2), by_n = 1 / std::pow(2.26, 2);
  const auto mean = [](double weights) { return (1 + 1.5 * weights) / (1 + weights); };
  CHECK(shapes.at(1'024, 1'024, 1'024, LeftOut::shape).ratio == Approx(mean(by_m + by_n)));
  CHECK(shapes.at(1'024, 1'024, 1'024, LeftOut::same_m).ratio == Approx(mean(by_m)));
  CHECK(shapes.at(1'024, 1'024, 1'024, LeftOut::same_n).ratio == Approx(mean(by_n)));
}

TEST_CASE("measured shapes multiply the time of a GEMM, and not its launch") {
  Gpu gpu = gpu_with({{4'096, 4'096, 4'096, 125}});
  gpu.launch_us = 7;
  const Kernel kernel = gemm("g", 4'096, 4'096, 4'096);
  const Time modelled = modelled_time(kernel, gpu);
  const KernelCost cost = kernel_cost(kernel, gpu);
  CHECK(static_cast<double>(cost.ps - 7 * kMicrosecond) ==
        Approx(1.25 * static_cast<double>(modelled - 7 * kMicrosecond)));
  CHECK(cost.basis == TimeBasis::measured);
  // Experts run one by one, each with a launch.
  const Kernel experts = grouped_gemm("g", 4'096, 4'096, 4'096, 3, Dtype::bf16);
  CHECK(kernel_cost(experts, gpu).ps == 3 * cost.ps);
  gpu.shapes = nullptr;
  CHECK(kernel_cost(kernel, gpu).ps == modelled);
  CHECK(kernel_cost(kernel, gpu).basis == TimeBasis::modelled);
}

TEST_CASE("kernels unlike those that were measured are at best interpolated") {
  const Gpu gpu = gpu_with({{4'096, 4'096, 4'096, 125}});
  CHECK(shape_correction(weight_gradient("g", 4'096, 4'096, 4'096), gpu).basis == TimeBasis::interpolated);
  const std::vector<std::int64_t> tokens{4'095, 4'097};
  CHECK(shape_correction(grouped_gemm("g", tokens, 4'096, 4'096, Dtype::bf16), gpu).basis == TimeBasis::interpolated);
  for (const Kernel& other : {gemm("g", 4'096, 4'096, 4'096, Dtype::fp32), gemm("g", 4'096, 4'096, 4'096, Dtype::fp8),
                              batched_gemm("g", 4'096, 4'096, 4'096, 2), memory_bound("copy", 4'096)}) {
    CHECK(shape_correction(other, gpu).ratio == 1);
    CHECK(shape_correction(other, gpu).basis == TimeBasis::modelled);
  }
}
