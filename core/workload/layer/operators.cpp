// Operators of the embedding, of a layer and of the head. Bytes per element are those of fused kernels as Megatron-LM
// runs them: bf16 tensors (2 bytes) once per read and per write, dropout masks 1 byte, main gradients fp32.
#include "core/workload/layer/operators.hpp"

#include <map>
#include <utility>

#include "core/workload/diffusion/modulated_norm.hpp"
#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/loss.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/parts/embeddings.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/weights/four_bit_weights.hpp"
#include "core/workload/weights/frozen_weights.hpp"
#include "core/workload/weights/sufficient_factors.hpp"

namespace manyworlds::core::workload {
namespace {

Operator stream_norm(const LayerBranch& branch, const RankShapes& shapes) {
  return norm("output_norm", branch.model, shapes, shapes.sp_region_tokens, shapes.hidden);
}

/// Adds what is before a part: its norm, whose backward pass adds the gradient that bypassed the part, or that sum
/// alone.
void open_branch(std::vector<Operator>& operators, const LayerBranch& branch, const RankShapes& shapes) {
  const BranchNames names = branch.part.branch_names();
  if (branch.options.norms == BranchNorms::modulated) {
    const std::size_t first = operators.size();
    add_modulated_norm(operators, names.norm, branch.model, shapes, branch.options.residual, names.recompute_module);
    for (std::size_t i = first; i < operators.size(); ++i) operators[i].offload_module = names.offload_module;
  } else if (branch.options.has_norm_before()) {
    operators.push_back(branch.options.residual
                            ? branch_norm(names.norm, branch.model, shapes)
                            : norm(names.norm, branch.model, shapes, shapes.sp_region_tokens, shapes.hidden));
    operators.back().in_modules = names.recompute_module;
    operators.back().offload_module = names.offload_module;
  } else if (branch.options.residual) {
    operators.push_back(elementwise("residual_gradient", shapes.sp_region_tokens * shapes.hidden, 0, 6, 0));
  }
}

std::int64_t matrix_flops(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const OpList* ops : {&each.forward, &each.backward})
      for (const WorkItem& work : *ops)
        if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

}  // namespace

std::vector<Operator> embedding_operators(const Model& model, const Strategy& strategy) {
  std::vector<Operator> operators;
  if (has_embedding(model)) add_embedding(operators, model, rank_shapes(model, strategy));
  return operators;
}

void add_branch_operators(std::vector<Operator>& operators, const LayerBranch& branch, const Strategy& strategy,
                          std::int64_t expert_rank) {
  const PartOnRank on_rank = part_on_rank(branch, strategy, expert_rank);
  const BranchNorms norms = branch.options.norms;
  const std::size_t first = operators.size();
  open_branch(operators, branch, on_rank.shapes);
  branch.part.add_operators(operators, on_rank);
  if (norms == BranchNorms::both) operators.push_back(stream_norm(branch, on_rank.shapes));
  const std::string_view sum = branch.part.branch_names().residual;
  if (norms == BranchNorms::modulated)
    operators.push_back(gated_residual(sum, branch.model, on_rank.shapes));
  else if (branch.options.residual)
    operators.push_back(residual(sum, on_rank.shapes, branch.model));
  if (norms == BranchNorms::after) operators.push_back(stream_norm(branch, on_rank.shapes));
  if (is_inference(branch.model))
    drop_backward_passes(operators, first);
  else if (is_frozen(branch.model))
    freeze_weights(operators, first, branch.model, on_rank.shapes,
                   branch.part.lora_parameters(branch.model).sharded > 0);
  if (is_frozen(branch.model) && branch.model.frozen_weights == WeightFormat::nf4) dequantise_weights(operators, first);
}

std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy, LayerKind kind,
                                      std::int64_t expert_rank) {
  std::vector<Operator> operators;
  for_each_branch(model, kind,
                  [&](const LayerBranch& branch) { add_branch_operators(operators, branch, strategy, expert_rank); });
  if (!kind.experts) exchange_factors(operators, strategy, rank_shapes(model, strategy, kind));
  return operators;
}

std::vector<Operator> head_operators(const Model& model, const Strategy& strategy) {
  if (!has_head(model)) return {};
  RankShapes shapes = rank_shapes(model, strategy);
  shapes.overlap_tensor = false;  // applies to layers only
  std::vector<Operator> operators{norm("final_norm", model, shapes, shapes.sp_region_tokens, shapes.hidden)};
  const std::int64_t outputs = 1 + model.mtp_layers;
  if (outputs > 1)  // hidden states of all depths become one tensor, as their gradients do
    operators.push_back(elementwise("mtp_states", outputs * shapes.sp_region_tokens * shapes.hidden, 4, 4, 0));
  if (is_generation(model)) shapes.tokens = shapes.samples;  // the last one of each has logits
  const bool in_chunks = shapes.stack.loss_chunks > 1;
  if (in_chunks) operators.push_back(loss_in_chunks(shapes, model));
  for (std::int64_t output = 0; output < outputs && !in_chunks; ++output) {
    operators.push_back(column_parallel(shapes, {"vocabulary", shapes.hidden, shapes.vocabulary, false}));
    if (has_cross_entropy(model)) operators.push_back(cross_entropy(shapes));
    if (model.teacher) operators.push_back(distillation_loss(shapes, has_cross_entropy(model)));
  }
  if (is_inference(model))
    drop_backward_passes(operators, 0);
  else if (is_frozen(model))
    freeze_weights(operators, 0, model, shapes, false);
  return operators;
}

std::int64_t model_flops_per_sequence(const Model& model) {
  const std::int64_t outputs = has_head(model) ? 1 + model.mtp_layers : 0,
                     head_passes = is_inference(model) ? 1
                                   : is_frozen(model)  ? 2
                                                       : 3,
                     head_tokens = is_generation(model) ? 1 : model.sequence;
  std::int64_t sum = outputs * 2 * head_passes * head_tokens * model.hidden * model.vocabulary;
  Strategy strategy;  // unfused attention computes all pairs of a sample; what generates counts those that are seen
  if (is_generation(model)) strategy.stack.attention = AttentionKernel::cudnn;
  std::map<std::pair<LayerKind, bool>, std::int64_t> flops;
  Model balanced = model;
  balanced.routing = nullptr;
  std::int64_t forward_only = forward_only_layers(balanced, Strategy{});
  for (const LayerKind kind : all_layers(balanced)) {
    const bool is_forward_only = forward_only-- > 0;
    const auto [known, is_new] = flops.try_emplace({kind, is_forward_only}, 0);
    if (is_new) {
      std::vector<Operator> operators = layer_operators(balanced, strategy, kind);
      if (is_forward_only) keep_forward_only(operators);
      known->second = matrix_flops(operators);
    }
    sum += known->second;
  }
  return model.teacher ? sum + forward_flops_per_sequence(*model.teacher) : sum;
}

}  // namespace manyworlds::core::workload
