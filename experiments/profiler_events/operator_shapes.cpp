#include "experiments/profiler_events/operator_shapes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/compute/scan_classes.hpp"
#include "experiments/kernels/operator_kernels.hpp"
#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::profiler {
namespace {

constexpr std::size_t kMaxKnown = 100'000;

/// Returns the shape of a kernel that programs can have: attention with values as wide as keys, and no window; no scan.
std::optional<programs::KernelShape> shape_of_kernel(const core::compute::Kernel& kernel) {
  using core::compute::KernelClass;
  programs::KernelShape shape;
  if (core::compute::is_scan(kernel.kernel_class)) return std::nullopt;
  if (kernel.kernel_class == KernelClass::memory_bound) {
    shape.bytes = kernel.bytes;
  } else if (kernel.kernel_class == KernelClass::gemm) {
    shape.gemm = {kernel.m, kernel.n, kernel.k, kernel.batch, kernel.dtype};
  } else {
    if (kernel.attention.value_width != kernel.k || kernel.attention.window != 0) return std::nullopt;
    shape.attention = {
        kernel.kernel_class,          kernel.m,    kernel.n, kernel.k, kernel.batch, kernel.attention.key_batch,
        kernel.attention.cut_by_mask, kernel.dtype};
  }
  return shape;
}

std::optional<programs::KernelShape> shape_of_operator(const std::string& name, const std::string& inputs) {
  const nlohmann::json arguments = nlohmann::json::parse("{" + inputs + "}", nullptr, false);
  if (!arguments.is_object()) return std::nullopt;
  try {
    return shape_of_kernel(import::kernel_of_operator(name, &arguments).kernel);
  } catch (const import::UnsupportedRow&) {
    return std::nullopt;
  }
}

}  // namespace

std::uint32_t OperatorShapes::shape_of(const std::string& name, const std::string& inputs) {
  std::string key = name + '\n' + inputs;
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  std::uint32_t number = kNone;
  if (auto shape = shape_of_operator(name, inputs)) {
    const auto same = std::find(shapes_.begin(), shapes_.end(), *shape);
    number = static_cast<std::uint32_t>(same - shapes_.begin());
    if (same == shapes_.end()) shapes_.push_back(*std::move(shape));
  }
  if (known_.size() < kMaxKnown) known_.emplace(std::move(key), number);
  return number;
}

void OperatorShapes::add(std::int64_t external, const std::string& name, const std::string& inputs) {
  const std::uint32_t number = shape_of(name, inputs);
  if (number != kNone) of_operators_.emplace_back(external, number);
}

void OperatorShapes::give_to(RankTrace& trace) {
  if (of_operators_.empty()) return;
  std::stable_sort(of_operators_.begin(), of_operators_.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  for (DeviceOp& op : trace.ops) {
    if (op.kind != DeviceKind::kernel || op.communicates() || op.external == 0) continue;
    const auto found = std::lower_bound(of_operators_.begin(), of_operators_.end(), op.external,
                                        [](const auto& one, std::int64_t external) { return one.first < external; });
    if (found != of_operators_.end() && found->first == op.external) op.shape = found->second;
  }
  trace.shapes = std::move(shapes_);
  *this = OperatorShapes();
}

}  // namespace manyworlds::experiments::profiler
