// torchtitan @9dec370, parallelisms/parallelize_llama.py, _save_list and _get_custom_policy().
#include "core/workload/activations/recompute_per_op.hpp"

#include <algorithm>
#include <string_view>

namespace manyworlds::core::workload {
namespace {

using compute::Dtype;
using compute::KernelClass;

bool is_gemm(const WorkItem& work) {
  return work.kernel() != nullptr && work.kernel()->shape.kernel_class == KernelClass::gemm;
}

bool is_narrow_gemm(const WorkItem& work) {
  return is_gemm(work) && (work.kernel()->shape.dtype == Dtype::fp8 || work.kernel()->shape.dtype == Dtype::fp4);
}

/// Whether some forward pass has such work.
bool has(const std::vector<Operator>& layer, bool (*such)(const WorkItem&)) {
  return std::any_of(layer.begin(), layer.end(), [such](const Operator& each) {
    return std::any_of(each.forward.begin(), each.forward.end(), such);
  });
}

/// What the operators of a layer have in common.
struct LayerGemms {
  bool narrow = false;  // below 16 bits
  bool gated = false;   // gate and up are two GEMMs, which here are one
};

/// Returns how many columns of an operator's GEMM number `index` are computed again.
std::int64_t columns_again(const Operator& each, int index, std::int64_t columns, const RankShapes& shapes,
                           LayerGemms gemms) {
  if (each.name == "mlp_down") return 0;
  if (each.name == "attention_output") return shapes.tensor_parallel == 1 ? columns : 0;
  if (gemms.narrow) return columns;
  if (!shapes.stack.projection_fusion && (each.name == "qkv" || gemms.gated)) return index == 1 ? columns : 0;
  if (each.name == "qkv") return shapes.kv_heads * shapes.head_dim;
  return gemms.gated ? columns / 2 : 0;
}

/// Returns the GEMMs of an operator that run again, and the quantisation of their input. Collectives do not: the
/// backward pass gathers the input itself.
OpList gemms_again(const Operator& each, const RankShapes& shapes, LayerGemms gemms) {
  OpList again;
  int gemm_count = 0;
  bool any = false;
  for (const WorkItem& work : each.forward) {
    if (work.kernel() == nullptr) continue;
    again.push_back(work);
    if (!is_gemm(work)) continue;
    compute::Kernel& kernel = again.back().kernel()->shape;
    const std::int64_t columns = columns_again(each, gemm_count++, kernel.n, shapes, gemms);
    if (columns == 0) {
      again.pop_back();
      continue;
    }
    kernel = compute::gemm(kernel.name, kernel.m, columns, kernel.k, kernel.dtype);
    any = true;
  }
  return any ? again : OpList{};
}

/// Saved of attention are query, value and output; of a gate in 16 bits one of its two inputs.
std::int64_t dropped_bytes(const Operator& each, const RankShapes& shapes, LayerGemms gemms) {
  if (each.name == "attention_output") return 0;
  if (each.in_modules & recompute::core_attn) {
    const std::int64_t inputs = gemms.narrow ? shapes.qkv_width() : shapes.kv_heads * shapes.head_dim;
    return std::min(2 * shapes.tokens * inputs, each.module_output_bytes);
  }
  return each.name == "swiglu" && !gemms.narrow ? each.saved_bytes / 2 : each.saved_bytes;
}

}  // namespace

void recompute_per_op(std::vector<Operator>& layer, const RankShapes& shapes) {
  const std::int64_t last = static_cast<std::int64_t>(layer.size()) - 1;
  const LayerGemms gemms{has(layer, is_narrow_gemm), std::any_of(layer.begin(), layer.end(), [](const Operator& each) {
                           return each.name == "swiglu";
                         })};
  for (Operator& each : layer) {
    const std::int64_t bytes = dropped_bytes(each, shapes, gemms);
    each.saved_bytes -= bytes;
    each.recomputed_bytes += bytes;
    each.recomputed_before = last;
    if (each.in_modules & recompute::core_attn) continue;
    const bool linear = std::any_of(each.forward.begin(), each.forward.end(), is_gemm);
    if (linear) each.recompute = gemms_again(each, shapes, gemms);
    if (!linear || !each.recompute.empty()) each.recompute_before = last;
  }
  // Saved is the layer's input, which its first norm would save otherwise.
  layer.front().saved_bytes = shapes.boundary_bytes();
  layer.front().recomputed_bytes -= shapes.boundary_bytes();
}

}  // namespace manyworlds::core::workload
