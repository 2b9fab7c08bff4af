#include "core/workload/weights/low_rank_pairs.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

/// A linear layer, or a projection in it, that may have a pair beside it, and the names of the pair's operators.
struct Target {
  std::string_view linear;
  Modules weight;
  bool by_columns;  // its outputs are divided over ranks, otherwise its inputs
  std::string_view a, b, magnitudes;
};
constexpr std::array<Target, 9> kTargets{{
    {"qkv", lora_weight::linear_qkv, true, "qkv_lora_a", "qkv_lora_b", "qkv_magnitudes"},
    {"qkv", lora_weight::linear_q, true, "q_lora_a", "q_lora_b", ""},
    {"qkv", lora_weight::linear_k, true, "k_lora_a", "k_lora_b", ""},
    {"qkv", lora_weight::linear_v, true, "v_lora_a", "v_lora_b", ""},
    {"attention_output", lora_weight::linear_proj, false, "attention_output_lora_a", "attention_output_lora_b",
     "attention_output_magnitudes"},
    {"mlp_up", lora_weight::linear_fc1, true, "mlp_up_lora_a", "mlp_up_lora_b", "mlp_up_magnitudes"},
    {"mlp_up", lora_weight::linear_fc1_gate, true, "mlp_fc1_gate_lora_a", "mlp_fc1_gate_lora_b", ""},
    {"mlp_up", lora_weight::linear_fc1_up, true, "mlp_fc1_up_lora_a", "mlp_fc1_up_lora_b", ""},
    {"mlp_down", lora_weight::linear_fc2, false, "mlp_down_lora_a", "mlp_down_lora_b", "mlp_down_magnitudes"},
}};

bool is_projection(const Target& target) {
  return (target.weight & kProjectionLoraWeights) != 0;
}

/// Returns the outputs of a projection, of `all` that its layer has on a rank: keys and values have heads of their own,
/// queries the rest, and both halves of a gated layer are as wide.
std::int64_t outputs_of(const Target& target, std::int64_t all, const Model& model, std::int64_t tp) {
  const std::int64_t keys = model.kv() * model.head_width() / tp;
  if (target.weight == lora_weight::linear_q) return all - 2 * keys;
  if (target.weight == lora_weight::linear_k || target.weight == lora_weight::linear_v) return keys;
  return is_projection(target) ? all / 2 : all;
}

/// A pair on one rank; `shares_input`: another pair saves what A reads.
class Pair {
 public:
  Pair(const Target& target, const Operator& linear, const Model& model, const RankShapes& shapes, bool shares_input)
      : target_(target),
        shapes_(shapes),
        tokens_(shapes.tokens),
        rank_(model.lora_rank),
        dropout_(model.dropout),
        shares_input_(shares_input && !dropout_ && !gathers_input()) {
    for (const WorkItem& work : linear.backward) {
      const KernelWork* kernel = work.kernel();
      if (kernel == nullptr || !kernel->weight_gradient || kernel->shape.kernel_class != compute::KernelClass::gemm)
        continue;
      in_ = kernel->shape.n;
      out_ += kernel->shape.m;
    }
    if (!target.by_columns) out_ /= shapes.tensor_parallel;  // B has a share of the layer's outputs
    out_ = outputs_of(target, out_, model, shapes.tensor_parallel);
  }

  Operator a() const {
    Operator result;
    result.name = target_.a;
    const std::int64_t inputs = tokens_ * in_, columns = target_.by_columns ? rank_ / tp() : rank_;
    result.saved_bytes = shares_input_ ? 0 : (dropout_ ? 3 : 2) * inputs;  // with the mask of what is dropped
    result.weight_gradient_input_bytes = 2 * tokens_ * (shares_input_ ? columns : in_ + columns);
    if (gathers_input()) block_on(result.forward, result.name, Kind::all_gather, 2 * inputs);
    if (dropout_) result.forward.push_back(kernel(memory_bound("lora_dropout", 5 * inputs)));
    result.forward.push_back(kernel(gemm(result.name, tokens_, columns, in_)));
    if (tp() > 1) target_.by_columns ? gather(result.forward, rank_) : sum(result.forward, rank_);

    if (target_.by_columns && tp() > 1) result.backward.push_back(own_share(rank_));
    result.backward.push_back(kernel(gemm(result.name, tokens_, in_, columns)));
    const bool sums = target_.by_columns && tp() > 1 && !shapes_.sequence_parallel;
    if (sums) start(result.backward, result.name, Kind::all_reduce, 2 * inputs);
    add_weight_gradient(result.backward, shapes_, weight_gradient(result.name, columns, in_, tokens_));
    if (sums) join(result.backward);
    if (dropout_) result.backward.push_back(kernel(memory_bound("lora_dropout", 5 * inputs)));
    if (gathers_input()) block_on(result.backward, result.name, Kind::reduce_scatter, 2 * inputs);
    const std::int64_t added = gathers_input() ? shapes_.sp_region_tokens * in_ : inputs;
    result.backward.push_back(kernel(memory_bound("lora_gradient_sum", 6 * added)));
    return result;
  }

  Operator b() const {
    Operator result;
    result.name = target_.b;
    const std::int64_t scaled = tokens_ * rank_, whole = out_ * tp();
    result.saved_bytes = 2 * scaled;
    result.weight_gradient_input_bytes = 2 * tokens_ * (rank_ + out_);
    result.forward.push_back(kernel(memory_bound("lora_scale", 4 * scaled)));
    result.forward.push_back(kernel(gemm(result.name, tokens_, out_, rank_)));
    if (!target_.by_columns && tp() > 1) gather(result.forward, whole);
    if (is_side_by_side()) result.forward.push_back(kernel(memory_bound("lora_concatenate", 4 * added_outputs())));
    result.forward.push_back(kernel(memory_bound("lora_add", 6 * added_outputs())));

    if (is_side_by_side()) result.backward.push_back(kernel(memory_bound("lora_split", 4 * added_outputs())));
    if (!target_.by_columns && tp() > 1) {
      if (shapes_.sequence_parallel) block_on(result.backward, result.name, Kind::all_gather, 2 * tokens_ * whole);
      result.backward.push_back(own_share(whole));
    }
    result.backward.push_back(kernel(gemm(result.name, tokens_, rank_, out_)));
    if (tp() > 1) start(result.backward, result.name, Kind::all_reduce, 2 * scaled);
    add_weight_gradient(result.backward, shapes_, weight_gradient(result.name, out_, rank_, tokens_));
    if (tp() > 1) join(result.backward);
    result.backward.push_back(kernel(memory_bound("lora_scale", 4 * scaled)));
    return result;
  }

  Operator magnitudes() const {
    Operator result;
    result.name = target_.magnitudes;
    const std::int64_t rows = target_.by_columns ? out_ : out_ * tp(), weights = rows * in_, outputs = added_outputs();
    if (tp() > 1) gather_factor(result.forward, rank_ * (target_.by_columns ? in_ : rows));
    result.forward.push_back(kernel(memory_bound("lora_scale", 4 * rows * rank_)));
    result.forward.push_back(kernel(gemm(result.name, rows, in_, rank_)));
    result.forward.push_back(kernel(memory_bound("magnitude_sum", 6 * weights)));
    result.forward.push_back(kernel(memory_bound("magnitude_norm", 2 * weights + 2 * rows)));
    result.forward.push_back(kernel(memory_bound("magnitude_quotient", 6 * rows)));
    result.forward.push_back(kernel(memory_bound("magnitude_scale", 4 * outputs)));
    result.saved_bytes = 2 * outputs;  // for the gradient of the scale

    result.backward.push_back(kernel(memory_bound("magnitude_scale", 4 * outputs)));
    result.weight_gradient_input_bytes = 4 * outputs;
    // Of the scale: a product and its sum over tokens; of the magnitude: a quotient, and its sum in fp32.
    for (const std::int64_t bytes : {6 * outputs, 2 * outputs, 6 * rows, 10 * rows})
      result.backward.push_back(weight_gradient_kernel(memory_bound("magnitude_gradient", bytes)));
    return result;
  }

 private:
  std::int64_t tp() const { return shapes_.tensor_parallel; }
  bool gathers_input() const { return target_.by_columns && shapes_.overlap_tensor; }
  /// Whether its outputs are those of a projection whose layer is one GEMM.
  bool is_side_by_side() const { return is_projection(target_) && shapes_.stack.projection_fusion; }
  std::int64_t added_outputs() const {
    return target_.by_columns ? tokens_ * out_ : shapes_.sp_region_tokens * out_ * tp();
  }

  /// Gathers `columns` that ranks have shares of, and puts the shares side by side.
  void gather(OpList& ops, std::int64_t columns) const {
    block_on(ops, target_.b, Kind::all_gather, 2 * tokens_ * columns);
    ops.push_back(kernel(memory_bound("lora_gather", 4 * tokens_ * columns)));
  }
  /// Gathers a factor that ranks have shares of, out of a transposed copy of the own share.
  void gather_factor(OpList& ops, std::int64_t elements) const {
    ops.push_back(kernel(memory_bound("lora_gather", 4 * elements / tp())));
    block_on(ops, target_.magnitudes, Kind::all_gather, 2 * elements);
    ops.push_back(kernel(memory_bound("lora_gather", 4 * elements)));
  }
  void sum(OpList& ops, std::int64_t columns) const {
    block_on(ops, target_.a, Kind::all_reduce, 2 * tokens_ * columns);
  }
  /// Copies the own share of `columns`.
  WorkItem own_share(std::int64_t columns) const {
    return kernel(memory_bound("lora_split", 4 * tokens_ * columns / tp()));
  }

  const Target& target_;
  const RankShapes& shapes_;
  const std::int64_t tokens_, rank_;
  const bool dropout_, shares_input_;
  std::int64_t in_ = 0, out_ = 0;  // of this rank's share of A and of B
};

}  // namespace

std::vector<Operator> pairs_beside(const Operator& linear, const Model& model, const RankShapes& shapes) {
  std::vector<Operator> result;
  for (const Target& target : kTargets) {
    if (target.linear != linear.name || !has_pair(model, target.weight)) continue;
    const Pair pair(target, linear, model, shapes, !result.empty());
    std::vector<Operator> operators{pair.a(), pair.b()};
    if (model.lora_magnitudes) operators.push_back(pair.magnitudes());
    operators.front().offload_module = linear.offload_module;
    for (Operator& each : operators) {
      each.in_modules = linear.in_modules;
      mark_input_from(each, &each == &operators.front() ? linear.input_from : linear.in_modules);
      result.push_back(std::move(each));
    }
  }
  return result;
}

std::int64_t magnitude_working_bytes(const std::vector<Operator>& operators) {
  std::int64_t maximum = 0;
  for (const Operator& each : operators)
    for (std::size_t i = 1; i < each.forward.size(); ++i)
      if (const KernelWork* sum = each.forward[i].kernel(); sum != nullptr && sum->shape.name == "magnitude_sum") {
        const compute::Kernel& product = each.forward[i - 1].kernel()->shape;
        maximum = std::max(maximum, 4 * product.m * product.n);
      }
  return maximum;
}

bool replaces_saved_input(const std::vector<Operator>& pairs, const Model& model) {
  return !pairs.empty() && !model.dropout;
}

}  // namespace manyworlds::core::workload
