// Measured times, which replace modelled ones: times of kernels, of submodules (the kernels of one operator in one
// pass) and of layers (the kernels of an embedding, a layer or a head), each identified by name and size.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/compute/gemm_shapes.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// Source of a kernel's time, from the finest to the coarsest.
enum class CostLevel : std::uint8_t { model, kernel, submodule, layer };
inline constexpr std::array<std::string_view, 4> kCostLevelNames{"model", "kernel", "submodule", "layer"};

/// Pass of a submodule or layer; `any` for kernels, since kernels of one shape run in both passes.
enum class Direction : std::uint8_t { any, forward, backward };
inline constexpr std::array<std::string_view, 3> kDirectionNames{"", "forward", "backward"};

/// Names in the order of KernelClass and of Dtype.
inline constexpr std::array<std::string_view, 10> kKernelClassNames{
    "gemm",          "flash_forward",  "flash_backward", "flash2_forward", "flash2_backward",
    "cudnn_forward", "cudnn_backward", "memory_bound",   "state_space",    "delta_rule"};
inline constexpr std::array<std::string_view, 4> kDtypeNames{"bf16", "fp32", "fp8", "fp4"};
/// Names in the order of TimeBasis.
inline constexpr std::array<std::string_view, 3> kTimeBasisNames{"modelled", "interpolated", "measured"};

/// The key of a measured time. For a kernel, the members are those of Kernel. For a submodule or a layer, m is the
/// number of tokens of a micro-batch on its rank, n the tokens of a sample that attention reads, k the model's hidden
/// size and batch the number of samples; bytes and FLOPs are sums over its kernels; class and type are the most
/// specific ones among its kernels (fused attention before GEMM before others; the narrowest type).
struct MeasurementKey {
  static constexpr std::int64_t kAny = -1;
  CostLevel level = CostLevel::kernel;
  std::string name;  // of the operator or the kind of layer; in a table row for a kernel, empty matches any
  Direction direction = Direction::any;
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0, flops = 0;  // in a table row, kAny matches any
  auto operator<=>(const MeasurementKey&) const = default;
};

/// Returns whether a kernel can have a measured time. Kernels of experts with unequal numbers of tokens cannot, since a
/// table row does not state the tokens of each expert.
bool is_measurable(const Kernel& kernel);
/// Returns the key of a kernel's measured time.
MeasurementKey measurement_key(const Kernel& kernel);
/// Returns a description in one line, for messages.
std::string describe(const MeasurementKey& key);

struct MeasuredTime {
  Time time_ps = 0;
  int row = 0;  // row number in its table
};

class MeasuredTimes {
 public:
  /// Returns the most specific matching row, or null: rows with a name take precedence over rows without, and rows with
  /// bytes and FLOPs over rows without.
  const MeasuredTime* find(const MeasurementKey& key) const;
  /// Adds a time under the exact key `row` and returns it; returns the earlier time, unchanged, if there is one.
  const MeasuredTime& add(const MeasurementKey& row, MeasuredTime time) {
    return times_.try_emplace(row, time).first->second;
  }
  std::size_t size() const { return times_.size(); }
  /// Returns the rows of one level.
  MeasuredTimes only(CostLevel level) const;

 private:
  std::map<MeasurementKey, MeasuredTime> times_;
};

struct KernelCost {
  Time ps = 0;
  CostLevel level = CostLevel::model;
  TimeBasis basis = TimeBasis::modelled;
};

/// Returns the cost of a single kernel: the measured time if the GPU's table has one, otherwise as estimated_cost().
KernelCost kernel_cost(const Kernel& kernel, const Gpu& gpu);
/// Returns the modelled time, which the GPU's measured shapes correct.
KernelCost estimated_cost(const Kernel& kernel, const Gpu& gpu);

/// Kinds of kernels, each of which has a rate of its own: GEMMs by format, passes of fused attention, those that only
/// move bytes, two kinds of scans.
inline constexpr std::size_t kKernelKinds = kGemmFormats + 9;
/// The option that has the rate, by kind.
inline constexpr std::array<std::string_view, kKernelKinds> kRateOptions{
    "gemm_efficiency",           "fp8_gemm_efficiency",       "fp4_gemm_efficiency",        "flash_forward_efficiency",
    "flash_backward_efficiency", "flash2_forward_efficiency", "flash2_backward_efficiency", "cudnn_forward_efficiency",
    "cudnn_backward_efficiency", "memory_efficiency",         "state_space_efficiency",     "delta_rule_efficiency"};
/// Returns the kernel's kind, below kKernelKinds.
std::size_t kind_of(const Kernel& kernel);

}  // namespace manyworlds::core::compute
