#include "core/workload/layer/distillation.hpp"

#include <initializer_list>
#include <string_view>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/weights/frozen_weights.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

/// Adds a kernel for each number of bytes of a logit.
void add_kernels(OpList& ops, const RankShapes& shapes, std::string_view name,
                 std::initializer_list<std::int64_t> bytes) {
  for (const std::int64_t each : bytes) ops.push_back(kernel(memory_bound(name, each * shapes.logits())));
}

/// Adds the log-softmax of sharded logits but for its last difference: to fp32, over the temperature, maximum,
/// difference, exponential, sum.
void add_sharded_softmax(OpList& ops, const RankShapes& shapes, std::string_view name) {
  add_kernels(ops, shapes, name, {6, 8, 4});
  block_on(ops, "loss_maximum", collective::Kind::all_reduce, 4 * shapes.tokens);
  add_kernels(ops, shapes, name, {8, 8, 4});
  block_on(ops, "loss_sum", collective::Kind::all_reduce, 4 * shapes.tokens);
}

}  // namespace

Strategy teacher_strategy(const Strategy& strategy) {
  Strategy result = strategy;
  result.split = LayerSplit::even;
  result.stage_layers.clear(), result.stage_recompute_layers.clear();
  result.empty_layers = 0;
  result.recompute = Recompute::none;
  result.recompute_modules = result.offload_modules = 0;
  result.recompute_layers = result.recompute_stages = result.offload_layers = result.offload_stages = 0;
  result.expert_recompute_tokens = 0;
  result.gradient_exchange = GradientExchange::sums;
  return result;
}

Parameters teacher_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  if (!model.teacher) return {};
  return stage_parameters(*model.teacher, teacher_strategy(strategy), stage);
}

std::vector<Operator> teacher_head_operators(const Model& teacher, const Strategy& strategy) {
  RankShapes shapes = rank_shapes(teacher, strategy);
  shapes.overlap_tensor = false;  // applies to layers only
  std::vector<Operator> operators{norm("final_norm", teacher, shapes, shapes.sp_region_tokens, shapes.hidden),
                                  column_parallel(shapes, {"vocabulary", shapes.hidden, shapes.vocabulary, false})};
  keep_forward_only(operators);
  return operators;
}

Operator distillation_loss(const RankShapes& shapes, bool beside_cross_entropy) {
  constexpr std::string_view kName = "distillation_loss";
  Operator result;
  result.name = kName;
  result.saved_bytes = kDistillationSavedBytes * shapes.logits();
  if (shapes.tensor_parallel > 1) {
    add_sharded_softmax(result.forward, shapes, kName);  // of the teacher
    add_sharded_softmax(result.forward, shapes, kName);  // of the student
    // Both log-probabilities; the teacher's probabilities, the difference, their product, and its sum.
    add_kernels(result.forward, shapes, kName, {8, 8, 8, 12, 12, 4});
    // Of the product and of the difference; through the logarithm of the sum: negated, and summed over the shard.
    add_kernels(result.backward, shapes, kName, {8, 8, 8, 4});
    block_on(result.backward, "loss_gradient", collective::Kind::all_reduce, 4 * shapes.tokens);
    add_kernels(result.backward, shapes, kName, {8, 12});  // of the exponential, added to the other gradient
  } else {
    // To fp32 and over the temperature, both; log-softmax and softmax; xlogy(), the product, the difference, its sum.
    add_kernels(result.forward, shapes, kName, {6, 8, 6, 8, 8, 8, 8, 12, 12, 4});
    add_kernels(result.backward, shapes, kName, {4, 12, 12});  // of the difference, the product and the log-softmax
  }
  add_kernels(result.backward, shapes, kName, {8, 6});  // over the temperature, to 16 bits
  if (beside_cross_entropy) add_kernels(result.backward, shapes, kName, {6});
  return result;
}

std::int64_t distillation_transient_bytes(const RankShapes& shapes) {
  constexpr std::int64_t kLogits = 2 * (2 + 4), kEach = 4;
  return kLogits + (shapes.tensor_parallel > 1 ? 4 : 3) * kEach;
}

std::int64_t forward_flops_per_sequence(const Model& teacher) {
  Model scored = teacher;
  scored.inference = Inference::scoring;
  return model_flops_per_sequence(scored);
}

}  // namespace manyworlds::core::workload
