#include "core/workload/weights/frozen_weights.hpp"

#include <algorithm>

#include "core/workload/weights/low_rank_pairs.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::KernelClass;

bool is_gemm_of_weight(const WorkItem& work) {
  return work.computes_weight_gradient() && work.kernel()->shape.kernel_class == KernelClass::gemm;
}

bool is_linear(const Operator& each) {
  return std::any_of(each.backward.begin(), each.backward.end(), is_gemm_of_weight);
}

bool is_fused_attention(const WorkItem& work) {
  if (work.kernel() == nullptr) return false;
  const KernelClass kernel_class = work.kernel()->shape.kernel_class;
  return kernel_class == KernelClass::flash_forward || kernel_class == KernelClass::flash2_forward ||
         kernel_class == KernelClass::cudnn_forward;
}

bool has_fused_attention(const Operator& each) {
  return std::any_of(each.forward.begin(), each.forward.end(), is_fused_attention);
}

OpList::iterator find_start(OpList& ops, Kind kind) {
  return std::find_if(ops.begin(), ops.end(),
                      [kind](const WorkItem& work) { return work.start() != nullptr && work.start()->kind == kind; });
}

/// Takes out the gather of a column-parallel layer's input, which runs beside the gradient of that input and is copied
/// behind the scatter of the latter.
void drop_input_gather(OpList& backward) {
  auto gather = find_start(backward, Kind::all_gather);
  if (gather == backward.end() || find_start(backward, Kind::reduce_scatter) == backward.end()) return;
  gather = backward.erase(gather);
  const auto wait = std::find_if(gather, backward.end(),
                                 [](const WorkItem& work) { return std::holds_alternative<Join>(work.action); });
  if (wait != backward.end()) backward.erase(wait);
  const auto scatter = find_start(backward, Kind::reduce_scatter);
  const auto copy = std::find_if(scatter, backward.end(), [](const WorkItem& work) {
    return work.kernel() != nullptr && work.kernel()->shape.name == "copy_sequence";
  });
  if (copy != backward.end()) backward.erase(copy);
}

/// Takes out of kernels that quantise the operands of GEMMs the write of the layout that weight gradients read: one of
/// 4 bytes an element in FP8, and a half of 5 in FP4.
void quantise_once(OpList& ops, compute::Dtype dtype) {
  for (WorkItem& work : ops)
    if (KernelWork* kernel = work.kernel(); kernel != nullptr && kernel->shape.name == "quantise")
      kernel->shape.bytes -= kernel->shape.bytes / (dtype == compute::Dtype::fp4 ? 10 : 4);
}

compute::Dtype narrowest(const OpList& ops) {
  compute::Dtype dtype = compute::Dtype::bf16;
  for (const WorkItem& work : ops)
    if (work.kernel() != nullptr) dtype = std::max(dtype, work.kernel()->shape.dtype);
  return dtype;
}

/// Gathers the input of a column-parallel layer in 16 bits, for pairs beside it, and quantises all of it behind that
/// (Transformer Engine, module/layernorm_linear.py, return_layernorm_output_gathered).
void gather_in_16_bits(Operator& linear, const RankShapes& shapes) {
  const auto gather = find_start(linear.forward, Kind::all_gather);
  if (gather == linear.forward.end()) return;
  std::int64_t in = 0;
  for (WorkItem& work : linear.forward) {
    KernelWork* const kernel = work.kernel();
    if (kernel == nullptr) continue;
    if (kernel->shape.kernel_class == KernelClass::gemm) in = kernel->shape.k;
    if (kernel->shape.name == "quantise") kernel->shape.bytes *= shapes.tensor_parallel;
  }
  std::get<CollectiveStart>(gather->action).bytes = 2 * shapes.tokens * in;
}

/// Freezes a linear layer; `keeps_input`: its input is saved for another operator.
void freeze_linear(Operator& linear, bool keeps_input) {
  const compute::Dtype dtype = narrowest(linear.forward);
  std::erase_if(linear.backward, [](const WorkItem& work) { return work.computes_weight_gradient(); });
  drop_input_gather(linear.backward);
  quantise_once(linear.forward, dtype), quantise_once(linear.backward, dtype);
  linear.weight_gradient_input_bytes = 0;
  if (!keeps_input) linear.saved_bytes = linear.module_output_bytes = 0;
}

}  // namespace

void freeze_weights(std::vector<Operator>& operators, std::size_t first, const Model& model, const RankShapes& shapes,
                    bool has_pairs) {
  std::vector<Operator> frozen(operators.begin(), operators.begin() + static_cast<std::ptrdiff_t>(first));
  bool reads_attention = false;  // the operator's input is fused attention's output
  for (std::size_t i = first; i < operators.size(); ++i) {
    Operator& each = operators[i];
    if (!is_linear(each)) {
      std::erase_if(each.backward, [](const WorkItem& work) { return work.computes_weight_gradient(); });
      reads_attention = has_fused_attention(each) || (reads_attention && each.saved_bytes == 0);
      frozen.push_back(std::move(each));
      continue;
    }
    std::vector<Operator> pairs;
    if (has_pairs) pairs = pairs_beside(each, model, shapes);
    if (!pairs.empty() && !shapes.overlap_tensor) gather_in_16_bits(each, shapes);
    freeze_linear(each, reads_attention && !replaces_saved_input(pairs, model));
    frozen.push_back(std::move(each));
    for (Operator& one : pairs) frozen.push_back(std::move(one));
  }
  operators = std::move(frozen);
}

void drop_backward_passes(std::vector<Operator>& operators, std::size_t first) {
  for (std::size_t i = first; i < operators.size(); ++i) {
    Operator& each = operators[i];
    if (is_linear(each)) quantise_once(each.forward, narrowest(each.forward));
    each.backward.clear();
    each.weight_gradient_input_bytes = 0;
  }
}

void keep_forward_only(std::vector<Operator>& operators) {
  for (Operator& each : operators) {
    each.backward.clear();
    each.saved_bytes = each.attention_core_bytes = each.weight_gradient_input_bytes = each.module_output_bytes = 0;
  }
}

}  // namespace manyworlds::core::workload
