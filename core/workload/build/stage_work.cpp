// Parts and passes of one pipeline rank.
#include "core/workload/build/stage_work.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/layer_input.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/weights/frozen_weights.hpp"

namespace manyworlds::core::workload {
namespace {

/// Returns the trained parameters of norms, row-parallel biases, positions and parts that tensor-parallel ranks share
/// out by samples, which every one of them holds.
std::int64_t replicated_parameters_of(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk))
      sum += trained_replicated_parameters(model, strategy, kind);
  if (is_frozen(model)) return sum;
  const StageMap stages = strategy.stages();
  if (stages.has_first(stage))
    sum += embedding_parameters(model, strategy.tp) - token_table_parameters(model, strategy.tp);
  if (stages.has_last(stage)) sum += final_norm_parameters(model);
  return sum;
}

}  // namespace

PhaseList forward_pass(const std::vector<Operator>& operators) {
  PhaseList pass{{StepPart::forward, {}}};
  for (const Operator& each : operators) append(pass.back().ops, each.forward);
  return pass;
}

PhaseList backward_pass(const std::vector<Operator>& operators) {
  PhaseList pass;
  const auto append_phase = [&](StepPart category, const OpList& ops) {
    if (pass.empty() || pass.back().category != category) pass.push_back({category, {}});
    append(pass.back().ops, ops);
  };
  for (std::size_t i = operators.size(); i-- > 0;) {
    for (const Operator& each : operators)
      if (each.recompute_before == static_cast<std::int64_t>(i))
        append_phase(StepPart::recompute, each.recompute_pass());
    append_phase(StepPart::backward, operators[i].backward);
  }
  return pass;
}

namespace {

/// Returns the items of a backward pass that compute weight gradients, or all others.
PhaseList weight_gradient_work(const PhaseList& backward, bool wanted) {
  PhaseList selected;
  for (const Phase& phase : backward) {
    selected.push_back({phase.category, {}});
    for (const WorkItem& work : phase.ops)
      if (work.computes_weight_gradient() == wanted) selected.back().ops.push_back(work);
  }
  return selected;
}

class StageBuilder {
 public:
  /// Adds to `parts`. Without a GPU kernels get no cost. `is_teacher`: of embedding and head, too, the forward passes
  /// alone are wanted, and there is no loss.
  StageBuilder(const Model& model, const Strategy& strategy, const compute::Gpu* gpu, std::int64_t expert_rank,
               KernelCosts* costs, std::vector<PartWork>& parts, bool is_teacher = false)
      : model_(model),
        strategy_(strategy),
        gpu_(gpu),
        expert_rank_(expert_rank),
        costs_(costs),
        parts_(parts),
        is_teacher_(is_teacher) {}

  // Only layers are recomputed: what embedding and head save is small, or the logits themselves.
  ModelPart embedding() {
    return add_end("embedding", embedding_operators(model_, strategy_), embedding_parameters(model_, strategy_.tp));
  }
  ModelPart head() {
    return add_end("head", is_teacher_ ? teacher_head_operators(model_, strategy_) : head_operators(model_, strategy_),
                   head_parameters(model_, strategy_.tp, strategy_.stages().first_and_last_share_rank()));
  }
  /// Megatron-LM makes this copy of the table before the stage's layers, so that its gradient is among the last.
  ModelPart table_copy() { return add_end("table_copy", {}, table_copy_parameters(model_, strategy_)); }
  ModelPart layer(LayerKind kind, const ActivationPolicy& policy, bool forward_only) {
    const auto [known, is_new] = layers_.try_emplace({kind, policy, forward_only}, ModelPart{0});
    if (!is_new) return known->second;
    std::vector<Operator> operators = layer_operators(model_, strategy_, kind, expert_rank_);
    if (forward_only) {
      keep_forward_only(operators);
    } else {
      apply_activation_policy(operators, policy, rank_shapes(model_, strategy_, kind));
      if (policy.recompute_layer) keep_input(operators, model_, strategy_, kind);
    }
    const std::int64_t offloaded = offloaded_bytes(operators, policy);
    known->second = add(layer_name(model_, kind), std::move(operators), kind, layer_parameters(model_, strategy_, kind),
                        trained_layer_parameters(model_, strategy_, kind), !has_frozen_part(model_, kind));
    parts_[known->second].offloaded_bytes = offloaded;
    return known->second;
  }

 private:
  /// Adds the embedding or the head.
  ModelPart add_end(std::string_view name, std::vector<Operator> operators, std::int64_t parameters) {
    const bool trained = !is_frozen(model_), in_chunks = name == "head" && strategy_.stack.loss_chunks > 1;
    if (is_teacher_) keep_forward_only(operators);
    return add(name, std::move(operators), {}, {parameters, 0}, {trained ? parameters : 0, 0}, trained && !in_chunks);
  }

  /// `is_measurable`: all of its weights are trained, and its loss is whole, as rows of measured layers describe it.
  ModelPart add(std::string_view name, std::vector<Operator> operators, LayerKind kind, const Parameters& parameters,
                const Parameters& trained, bool is_measurable) {
    if (gpu_ != nullptr)
      kernel_cost(name, rank_shapes(model_, strategy_, kind), *gpu_, operators, costs_, is_measurable);
    const PhaseList backward = backward_pass(operators);
    PartWork result{forward_pass(operators),
                    backward,
                    weight_gradient_work(backward, false),
                    weight_gradient_work(backward, true),
                    parameters,
                    is_teacher_ ? Parameters{} : trained};
    for (auto each = operators.rbegin(); each != operators.rend(); ++each)
      if (each->factors) result.factors.push_back(std::move(*each->factors));
    for (const Operator& each : operators) {
      result.saved_bytes += each.saved_bytes + each.attention_core_bytes;
      result.weight_gradient_input_bytes += each.weight_gradient_input_bytes;
    }
    parts_.push_back(std::move(result));
    return parts_.size() - 1;
  }

  const Model& model_;
  const Strategy& strategy_;
  const compute::Gpu* gpu_;
  const std::int64_t expert_rank_;
  KernelCosts* costs_;
  std::vector<PartWork>& parts_;
  const bool is_teacher_;
  std::map<std::tuple<LayerKind, ActivationPolicy, bool>, ModelPart> layers_;  // the last: forward only
};

/// Puts the teacher's parts of a chunk, which run first, in front of the student's.
void add_teacher(std::vector<ModelPart>& chunk, StageBuilder& builder, const Model& teacher, const Strategy& strategy,
                 std::int64_t stage, std::int64_t chunk_index) {
  const StageMap stages = strategy.stages();
  if (stages.is_first(stage, chunk_index)) chunk.push_back(builder.embedding());
  for (const LayerKind kind : chunk_layers(teacher, strategy, stage, chunk_index))
    chunk.push_back(builder.layer(kind, {}, true));
  if (stages.is_last(stage, chunk_index)) chunk.push_back(builder.head());
}

StageWork built_stage_work(const Model& model, const Strategy& strategy, const compute::Gpu* gpu, RankClass rank_class,
                           KernelCosts* costs) {
  const std::int64_t stage = rank_class.stage;
  StageWork work;
  StageBuilder builder(model, strategy, gpu, rank_class.expert_rank, costs, work.parts);
  const Strategy of_teacher = teacher_strategy(strategy);
  StageBuilder teacher(model.teacher ? *model.teacher : model, of_teacher, gpu, rank_class.expert_rank, costs,
                       work.parts, true);
  const StageMap stages = strategy.stages();
  const std::int64_t forward_only = forward_only_layers(model, strategy);
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    std::vector<ModelPart>& parts = work.chunks.emplace_back();
    if (model.teacher) add_teacher(parts, teacher, *model.teacher, of_teacher, stage, chunk);
    if (stages.is_first(stage, chunk)) parts.push_back(builder.embedding());
    if (stages.is_last(stage, chunk) && table_copy_parameters(model, strategy) > 0)
      parts.push_back(builder.table_copy());
    std::int64_t layer_index = 0;
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk))
      parts.push_back(builder.layer(kind, activation_policy(strategy, stage, chunk, layer_index, kind),
                                    stages.is_first(stage, chunk) && layer_index < forward_only)),
          ++layer_index;
    if (stages.is_last(stage, chunk)) parts.push_back(builder.head());
  }
  for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk) work.model_order.push_back(chunk);
  std::sort(work.model_order.begin(), work.model_order.end(), [&](std::size_t a, std::size_t b) {
    return stages.of(stage, static_cast<std::int64_t>(a)) < stages.of(stage, static_cast<std::int64_t>(b));
  });
  work.cuda_graphs = strategy.stack.cuda_graphs;
  work.launch_times = strategy.stack.launch_times();
  work.has_embedding_and_head = stages.has_first(stage) && stages.has_last(stage);
  work.replicated_parameters = replicated_parameters_of(model, strategy, stage);
  return work;
}

}  // namespace

StageWork stage_work(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass rank_class,
                     KernelCosts* costs) {
  return built_stage_work(model, strategy, &gpu, rank_class, costs);
}

StageWork stage_work_without_costs(const Model& model, const Strategy& strategy, RankClass rank_class) {
  return built_stage_work(model, strategy, nullptr, rank_class, nullptr);
}

Parameters summed_parameters(const StageWork& work, Parameters parameters) {
  for (const auto& chunk : work.chunks)
    for (const ModelPart part : chunk)
      for (const WeightFactors& weight : work.of(part).factors) parameters.dense -= weight.parameters;
  return parameters;
}

std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, const Parameters& parameters) {
  using compute::Dtype;
  using compute::memory_bound;
  if (parameters.total() == 0) return {};
  const auto divided = [](std::int64_t count, std::int64_t parts) { return (count + parts - 1) / parts; };
  const std::int64_t share = strategy.zero > 0 ? divided(parameters.dense, strategy.shards()) +
                                                     divided(parameters.experts, strategy.expert_shards())
                                               : parameters.total();
  const std::int64_t gradients = strategy.zero > 1 ? share : parameters.total();
  // Adam reads gradient, master weight and two moments (16 bytes), writes the last three and the bf16 weight (14). In
  // operations of its own (PyTorch, optim/adam.py, _multi_tensor_adam(), and clip_grad_norm_()): the gradient is scaled
  // and the weight decays (8 each), the first moment moves (12), the second is scaled and gets a square (8 + 12), a
  // root, a quotient and a sum are new tensors (8 each), and the weight moves (16).
  const std::int64_t adam = strategy.stack.optimizer_fusion ? 30 : 88;
  return {memory_bound("gradient_norm", 4 * share, Dtype::fp32), memory_bound("adam", adam * share, Dtype::fp32),
          memory_bound("zero_gradients", 4 * gradients, Dtype::fp32)};
}

}  // namespace manyworlds::core::workload
