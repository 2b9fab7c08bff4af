// Times that somebody measured, in the place of modelled ones: of kernels, of submodules (the kernels of one operator
// in one pass) and of layers (those of an embedding, a layer or a head), each found by its name and its size.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// Where a kernel's time comes from, the coarsest last.
enum class Level : std::uint8_t { model, kernel, submodule, layer };
inline constexpr std::array<std::string_view, 4> kLevelNames{"model", "kernel", "submodule", "layer"};

/// Kernels of one shape run in both directions.
enum class Direction : std::uint8_t { any, forward, backward };
inline constexpr std::array<std::string_view, 3> kDirectionNames{"", "forward", "backward"};

/// In the order of KernelClass and of Dtype.
inline constexpr std::array<std::string_view, 6> kKernelClassNames{"gemm",          "flash_forward",  "flash_backward",
                                                                   "cudnn_forward", "cudnn_backward", "memory_bound"};
inline constexpr std::array<std::string_view, 4> kDtypeNames{"bf16", "fp32", "fp8", "fp4"};

/// A kernel as in Kernel; or a submodule or a layer, whose m is the tokens of a micro-batch on its rank, n those of a
/// sample that attention looks at, k the model's hidden size and batch the samples; its bytes and FLOPs are those of
/// all its kernels, class and type those of the most particular one (fused attention, GEMM, other; the narrowest type).
struct Measurable {
  static constexpr std::int64_t kAny = -1;
  Level level = Level::kernel;
  std::string name;  // of the operator, or of the kind of layer; of a row for a kernel: empty means any
  Direction direction = Direction::any;
  KernelClass kernel_class = KernelClass::memory_bound;
  Dtype dtype = Dtype::bf16;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  std::int64_t bytes = 0, flops = 0;  // of a row: kAny where the rest says enough
  auto operator<=>(const Measurable&) const = default;
};

/// Of experts with unequal numbers of tokens nothing is: no row says how many each has.
bool can_be_measured(const Kernel& kernel);
Measurable measurable(const Kernel& kernel);
/// One line for people.
std::string describe(const Measurable& of);

struct MeasuredTime {
  Time time_ps = 0;
  int row = 0;  // of its table
};

class MeasuredTimes {
 public:
  /// The row that says most of `of`: with its name before without, with bytes and FLOPs before without. Null: none.
  const MeasuredTime* find(const Measurable& of) const;
  /// The time that stands for exactly this; `time` where nothing stood there before.
  const MeasuredTime& add(const Measurable& row, MeasuredTime time) {
    return times_.try_emplace(row, time).first->second;
  }
  std::size_t size() const { return times_.size(); }

 private:
  std::map<Measurable, MeasuredTime> times_;
};

struct Price {
  Time ps = 0;
  Level level = Level::model;
};

/// Of a kernel by itself: what the GPU's table has of it, otherwise cost().
Price price(const Kernel& kernel, const Gpu& gpu);

}  // namespace manyworlds::core::compute
