// Measured GEMMs on a grid of shapes, as ratios of measured to modelled times. A shape of the grid has its own ratio;
// one between its lines has a mean by inverse distance (Shepard 1968), which is drawn to 1, the model alone, far from
// all that was measured. Only + - x / on doubles are used: the results have the same bits on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

/// What a time is based on, from the least to the most certain.
enum class TimeBasis : std::uint8_t { modelled, interpolated, measured };

/// What a look-up does as if it were not measured, to tell how well the others replace it.
enum class LeftOut : std::uint8_t { nothing, shape, same_m, same_n };

class GemmShapes {
 public:
  /// A GEMM C[m,n] = A[m,k] B[k,n], and its measured time as a percentage of the modelled one, at least 1.
  struct Point {
    std::int64_t m = 0, n = 0, k = 0;
    std::uint16_t percent = 0;
  };
  explicit GemmShapes(const std::vector<Point>& points);

  struct Correction {
    double ratio = 1;
    TimeBasis basis = TimeBasis::modelled;  // interpolated: measured shapes outweigh the model
  };
  Correction at(std::int64_t m, std::int64_t n, std::int64_t k, LeftOut left_out = LeftOut::nothing) const;

 private:
  /// Sizes of the grid in one dimension, and their logarithms.
  struct Axis {
    std::vector<std::int64_t> sizes;
    std::vector<double> logs;
  };
  static constexpr std::size_t kDimensions = 3;  // m, n, k
  std::size_t index(std::size_t m, std::size_t n, std::size_t k) const {
    return (m * axes_[1].sizes.size() + n) * axes_[2].sizes.size() + k;
  }

  std::array<Axis, kDimensions> axes_;
  std::vector<std::uint16_t> percents_;  // 0: not measured
};

/// The measured shapes of one GPU, by GemmFormat.
struct MeasuredShapes {
  std::array<std::optional<GemmShapes>, kGemmFormats> gemm;
};

struct Kernel;
/// Returns what the GPU's measured shapes say of a kernel: nothing if it is no GEMM, or a batched one. Gradients of
/// weights, which are stored in another layout and add to fp32, and experts with unequal tokens, by their mean, are at
/// best interpolated.
GemmShapes::Correction shape_correction(const Kernel& kernel, const Gpu& gpu);

}  // namespace manyworlds::core::compute
