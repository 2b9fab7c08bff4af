#include "core/workload/layer/low_rank_pairs.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

/// A linear layer that may have a pair beside it, and the names of the pair's operators.
struct Target {
  std::string_view linear;
  Modules weight;
  bool by_columns;  // its outputs are divided over ranks, otherwise its inputs
  std::string_view a, b;
};
constexpr std::array<Target, 4> kTargets{{
    {"qkv", lora_weight::linear_qkv, true, "qkv_lora_a", "qkv_lora_b"},
    {"attention_output", lora_weight::linear_proj, false, "attention_output_lora_a", "attention_output_lora_b"},
    {"mlp_up", lora_weight::linear_fc1, true, "mlp_up_lora_a", "mlp_up_lora_b"},
    {"mlp_down", lora_weight::linear_fc2, false, "mlp_down_lora_a", "mlp_down_lora_b"},
}};

/// A pair on one rank.
class Pair {
 public:
  Pair(const Target& target, const Operator& linear, const Model& model, const RankShapes& shapes)
      : target_(target), shapes_(shapes), tokens_(shapes.tokens), rank_(model.lora_rank), dropout_(model.dropout) {
    for (const WorkItem& work : linear.backward) {
      const KernelWork* kernel = work.kernel();
      if (kernel == nullptr || !kernel->weight_gradient || kernel->shape.kernel_class != compute::KernelClass::gemm)
        continue;
      in_ = kernel->shape.n;
      out_ += kernel->shape.m;
    }
    if (!target.by_columns) out_ /= shapes.tensor_parallel;  // B has a share of the layer's outputs
  }

  Operator a() const {
    Operator result;
    result.name = target_.a;
    const std::int64_t inputs = tokens_ * in_, columns = target_.by_columns ? rank_ / tp() : rank_;
    result.saved_bytes = (dropout_ ? 3 : 2) * inputs;  // with the mask of what is dropped
    result.weight_gradient_input_bytes = 2 * tokens_ * (in_ + columns);
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
    result.forward.push_back(kernel(memory_bound("lora_add", 6 * added_outputs())));

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

 private:
  std::int64_t tp() const { return shapes_.tensor_parallel; }
  bool gathers_input() const { return target_.by_columns && shapes_.overlap_tensor; }
  std::int64_t added_outputs() const {
    return target_.by_columns ? tokens_ * out_ : shapes_.sp_region_tokens * out_ * tp();
  }

  /// Gathers `columns` that ranks have shares of, and puts the shares side by side.
  void gather(OpList& ops, std::int64_t columns) const {
    block_on(ops, target_.b, Kind::all_gather, 2 * tokens_ * columns);
    ops.push_back(kernel(memory_bound("lora_gather", 4 * tokens_ * columns)));
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
  const bool dropout_;
  std::int64_t in_ = 0, out_ = 0;  // of this rank's share of A and of B
};

}  // namespace

std::vector<Operator> pair_beside(const Operator& linear, const Model& model, const RankShapes& shapes) {
  const auto target =
      std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& each) { return each.linear == linear.name; });
  if (target == kTargets.end() || !has_pair(model, target->weight)) return {};
  const Pair pair(*target, linear, model, shapes);
  std::vector<Operator> result{pair.a(), pair.b()};
  for (Operator& each : result) each.in_modules = linear.in_modules;
  mark_input_from(result[0], linear.input_from);
  result[0].offload_module = linear.offload_module;
  mark_input_from(result[1], linear.in_modules);
  return result;
}

bool replaces_saved_input(const std::vector<Operator>& pair, const Model& model) {
  return !pair.empty() && !model.dropout;
}

}  // namespace manyworlds::core::workload
