#include "core/compute/gemm_shapes.hpp"

#include <algorithm>
#include <bit>

#include "core/base/error.hpp"
#include "core/compute/gemm.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {
namespace {

// Distances are in powers of 2, times these: tiles and waves follow from m and n, so that K counts least.
constexpr std::array<double, 3> kScales{1, 1.5, 0.5};
constexpr double kNearby = 0.01;  // squared distance within which all shapes weigh the same

/// Returns the logarithm to base 2, linear between powers of 2.
double log2_of(std::int64_t size) {
  const auto exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))) - 1;
  return exponent - 1 + static_cast<double>(size) / static_cast<double>(std::int64_t{1} << exponent);
}

double squared(double x) {
  return x * x;
}

/// The lines of the grid around a size: one on each side, and the line of that size.
struct Window {
  std::size_t begin = 0, end = 0, on = 0;  // on: index of the line of that size; `end` if none
};

Window window_around(std::int64_t size, const std::vector<std::int64_t>& sizes) {
  const auto next = static_cast<std::size_t>(std::lower_bound(sizes.begin(), sizes.end(), size) - sizes.begin());
  const bool on_line = next < sizes.size() && sizes[next] == size;
  const std::size_t last_two = sizes.size() < 2 ? 0 : sizes.size() - 2;
  Window window;
  window.begin = std::min(next == 0 ? 0 : next - 1, last_two);
  window.end = std::min(sizes.size(), window.begin + (on_line ? 3 : 2));
  window.on = on_line ? next : window.end;
  return window;
}

}  // namespace

GemmShapes::GemmShapes(const std::vector<Point>& points) {
  constexpr std::array<std::int64_t Point::*, kDimensions> kSizes{&Point::m, &Point::n, &Point::k};
  for (std::size_t i = 0; i < kDimensions; ++i) {
    std::vector<std::int64_t>& sizes = axes_[i].sizes;
    for (const Point& point : points) sizes.push_back(point.*kSizes[i]);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::int64_t size : sizes) axes_[i].logs.push_back(log2_of(size));
  }
  percents_.resize(axes_[0].sizes.size() * axes_[1].sizes.size() * axes_[2].sizes.size());
  for (const Point& point : points) {
    MANYWORLDS_CHECK(point.percent > 0, "no time of a GEMM of {}x{}x{}", point.m, point.n, point.k);
    std::array<std::size_t, kDimensions> at{};
    for (std::size_t i = 0; i < kDimensions; ++i) at[i] = window_around(point.*kSizes[i], axes_[i].sizes).on;
    percents_[index(at[0], at[1], at[2])] = point.percent;
  }
}

GemmShapes::Correction GemmShapes::at(std::int64_t m, std::int64_t n, std::int64_t k, LeftOut left_out) const {
  const std::array<std::int64_t, kDimensions> shape{m, n, k};
  std::array<Window, kDimensions> near;
  std::array<std::array<double, 3>, kDimensions> distances{};  // squared, by line of the window
  for (std::size_t i = 0; i < kDimensions; ++i) {
    if (axes_[i].sizes.empty() || shape[i] < axes_[i].sizes.front()) return {};  // small GEMMs run other kernels
    near[i] = window_around(shape[i], axes_[i].sizes);
    const double log = log2_of(shape[i]);
    for (std::size_t line = near[i].begin; line < near[i].end; ++line)
      distances[i][line - near[i].begin] = squared(kScales[i] * (axes_[i].logs[line] - log));
  }
  double weights = 1, sum = 100;  // those of the model, of 100 %
  for (std::size_t i = near[0].begin; i < near[0].end; ++i) {
    if (left_out == LeftOut::same_m && i == near[0].on) continue;
    for (std::size_t j = near[1].begin; j < near[1].end; ++j) {
      if (left_out == LeftOut::same_n && j == near[1].on) continue;
      const double of_result = distances[0][i - near[0].begin] + distances[1][j - near[1].begin];
      for (std::size_t l = near[2].begin; l < near[2].end; ++l) {
        const double percent = percents_[index(i, j, l)];
        if (percent == 0) continue;
        const double distance = of_result + distances[2][l - near[2].begin];
        if (distance == 0 && left_out == LeftOut::nothing) return {percent / 100, TimeBasis::measured};
        if (distance == 0 && left_out == LeftOut::shape) continue;
        const double weight = 1 / squared(distance + kNearby);
        weights += weight;
        sum += weight * percent;
      }
    }
  }
  return {sum / weights / 100, weights >= 2 ? TimeBasis::interpolated : TimeBasis::modelled};
}

GemmShapes::Correction shape_correction(const Kernel& kernel, const Gpu& gpu) {
  if (!gpu.shapes || kernel.kernel_class != KernelClass::gemm || kernel.dtype == Dtype::fp32) return {};
  if (kernel.batch != 1 && !kernel.one_by_one) return {};
  const std::optional<GemmShapes>& shapes = gpu.shapes->gemm[static_cast<std::size_t>(gemm_format(kernel.dtype))];
  if (!shapes) return {};
  GemmShapes::Correction correction = shapes->at(kernel.m, kernel.n, kernel.k);
  if (kernel.accumulates || kernel.expert_tokens.tokens > 0)
    correction.basis = std::min(correction.basis, TimeBasis::interpolated);
  return correction;
}

}  // namespace manyworlds::core::compute
