#include "core/workload/weights/four_bit_weights.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/parts/registry.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

constexpr std::int64_t kBlock = 64, kConstantBlock = 256;
constexpr std::array<std::string_view, 4> kLinear{"qkv", "attention_output", "mlp_up", "mlp_down"};
constexpr std::string_view kDequantise = "dequantise";

bool is_linear_layer(const Operator& each) {
  return std::find(kLinear.begin(), kLinear.end(), each.name) != kLinear.end();
}

bool is_gemm(const WorkItem& work) {
  return work.kernel() != nullptr && work.kernel()->shape.kernel_class == compute::KernelClass::gemm;
}

/// The weights that a GEMM multiplies by, forward or for the gradient of its input.
std::int64_t weights_of(const WorkItem& gemm) {
  return gemm.kernel()->shape.n * gemm.kernel()->shape.k;
}

std::int64_t blocks(std::int64_t count, std::int64_t of) {
  return (count + of - 1) / of;
}

/// Bytes of the constants as they are kept.
std::int64_t constant_bytes(std::int64_t weights) {
  const std::int64_t constants = blocks(weights, kBlock);
  return constants + 4 * blocks(constants, kConstantBlock);
}

OpList with_dequantised(OpList ops) {
  OpList result;
  for (WorkItem& work : ops) {
    if (is_gemm(work)) {
      const std::int64_t weights = weights_of(work), constants = blocks(weights, kBlock);
      result.push_back(kernel(memory_bound("dequantise_constants", constant_bytes(weights) + 4 * constants)));
      result.push_back(kernel(memory_bound("dequantise_constants", 8 * constants)));
      result.push_back(kernel(memory_bound(kDequantise, (weights + 1) / 2 + 4 * constants + 2 * weights)));
    }
    result.push_back(std::move(work));
  }
  return result;
}

}  // namespace

std::int64_t four_bit_bytes(std::int64_t weights) {
  return (weights + 1) / 2 + constant_bytes(weights);
}

bool has_four_bit_weights(const Model& model) {
  bool any = model.frozen_weights == WeightFormat::nf4;
  if (model.architecture)
    for (const LayerKind kind : layer_kinds(model))
      for_each_branch(model, kind, [&](const LayerBranch& branch) {
        any |= is_frozen(branch.model) && branch.model.frozen_weights == WeightFormat::nf4;
      });
  return any;
}

void dequantise_weights(std::vector<Operator>& operators, std::size_t first) {
  for (std::size_t i = first; i < operators.size(); ++i) {
    if (!is_linear_layer(operators[i])) continue;
    operators[i].forward = with_dequantised(std::move(operators[i].forward));
    operators[i].backward = with_dequantised(std::move(operators[i].backward));
  }
}

FourBitWeights four_bit_weights(const std::vector<Operator>& layer) {
  FourBitWeights sum;
  for (const Operator& each : layer)
    for (std::size_t i = 0; i + 1 < each.forward.size(); ++i) {
      const KernelWork* before = each.forward[i].kernel();
      if (before == nullptr || before->shape.name != kDequantise) continue;
      const std::int64_t weights = weights_of(each.forward[i + 1]);
      sum.count += weights;
      sum.bytes += four_bit_bytes(weights);
      sum.largest = std::max(sum.largest, weights);
    }
  return sum;
}

}  // namespace manyworlds::core::workload
