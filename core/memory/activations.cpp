// Activations of layers, embedding and head.
#include "core/memory/activations.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/memory/allocator.hpp"
#include "core/memory/expert_tensors.hpp"
#include "core/workload/context_exchange.hpp"
#include "core/workload/operators.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Cut;
using workload::Model;
using workload::Operator;
using workload::Recompute;
using workload::Strategy;

Kept tensor(std::int64_t bytes) {
  return {bytes, reserved_bytes(bytes) - bytes};
}

/// Each operator's share as one tensor.
Kept kept(const std::vector<Operator>& operators, bool core) {
  Kept sum;
  for (const Operator& each : operators) {
    sum += tensor(each.kept_bytes);
    if (core) sum += tensor(each.core_bytes);
  }
  return sum;
}

Kept held(const std::vector<Operator>& operators) {
  Kept sum;
  for (const Operator& each : operators) sum += tensor(each.weight_bytes);
  return sum;
}

/// A layer's operators; where it has experts, what they keep stands for what its feed-forward part would.
std::vector<Operator> operators_of(const Model& model, const Strategy& strategy, const ExpertTensors* experts) {
  std::vector<Operator> operators = workload::layer_operators(model, strategy);
  if (experts == nullptr) return operators;
  std::erase_if(operators, [](const Operator& each) {
    return each.name == "mlp_up" || each.name == "gelu" || each.name == "swiglu" || each.name == "mlp_down";
  });
  for (const std::int64_t bytes : experts->kept) {
    operators.emplace_back();
    operators.back().kept_bytes = bytes;
  }
  return operators;
}

/// Gradients before and after the feed-forward layer's activation function, or before and after the softmax of
/// attention scores, or keys and values gathered from all ranks and their gradients, whichever are larger; with them
/// that of the residual stream.
std::int64_t working_bytes(const Model& model, const Strategy& strategy, const ExpertTensors* experts) {
  const Cut rank = workload::cut(model, strategy, {.experts = experts != nullptr});
  const std::int64_t widths = model.activation == workload::Activation::swiglu ? 3 : 2;
  const std::int64_t inner = experts ? experts->computed_rows * rank.expert_ffn : rank.tokens * rank.ffn;
  // Gradients of weights that are made late need the gradient of the experts' output until then.
  const std::int64_t late = experts && strategy.stack.delay_expert_weights ? experts->computed_rows * rank.hidden : 0;
  const std::int64_t feed_forward = 2 * (widths * inner + late) + (experts ? experts->copies_gradients : 0);
  const bool gathers = strategy.cp > 1 && strategy.cp_comm == workload::ContextExchange::all_gather;
  const std::int64_t gathered = gathers ? 2 * workload::gathered_key_bytes(rank, strategy.cp) : 0;
  return std::max({feed_forward, 2 * score_bytes(model, strategy), gathered}) + rank.hidden_bytes();
}

/// Of one weight in 16 bits, before it is added to those of earlier micro-batches.
std::int64_t largest_gradient(const std::vector<Operator>& operators) {
  std::int64_t most = 0;
  for (const Operator& each : operators)
    for (const workload::Work& work : each.backward) {
      const compute::Kernel& kernel = work.kernel;
      if (work.of_weights) most = std::max(most, 2 * kernel.m * kernel.n * kernel.batch);
    }
  return most;
}

}  // namespace

LayerBytes layer_bytes(const Model& model, const Strategy& strategy, workload::LayerKind kind,
                       std::int64_t expert_rank) {
  std::optional<ExpertTensors> experts;
  if (kind.experts) experts = expert_tensors(model, strategy, kind, expert_rank);
  const ExpertTensors* const inside = experts ? &*experts : nullptr;
  const std::vector<Operator> operators = operators_of(model, strategy, inside);
  const Kept all = kept(operators, true);
  const std::int64_t made_again = experts ? experts->made_again : 0;
  LayerBytes layer;
  const std::vector<Operator> work = workload::layer_operators(model, strategy, kind, expert_rank);
  layer.working = working_bytes(model, strategy, inside);
  if (!strategy.stack.gradient_accumulation_fusion) layer.working += largest_gradient(work);
  layer.held = held(work);
  switch (strategy.recompute) {
    case Recompute::none:
      layer.kept = all;
      layer.recomputed = made_again;
      break;
    case Recompute::selective:
      layer.kept = kept(operators, false);
      // Of experts before the core of attention: what is made again for them is gone by then.
      layer.recomputed = std::max(all.bytes - layer.kept.bytes, made_again);
      break;
    case Recompute::full:
      // The layer's whole input stays on every rank, 2sbh (Korthikanti et al., table 2). A layer that is made again has
      // its input, which the first norm keeps, from there.
      layer.kept = tensor(workload::cut(model, strategy).hidden_bytes());
      layer.recomputed = all.bytes - workload::cut(model, strategy).boundary_bytes();
      break;
  }
  return layer;
}

EndBytes end_bytes(const Model& model, const Strategy& strategy) {
  const std::int64_t logits = workload::cut(model, strategy).logits();
  EndBytes ends;
  ends.embedding = kept(workload::embedding_operators(model, strategy), true);
  std::vector<Operator> head = workload::head_operators(model, strategy);
  head.back().kept_bytes -= 4 * logits;
  ends.head_held = held(head);
  ends.head = kept(head, true);
  ends.logits_kept = 4 * logits;
  // In 16 bits the GEMM's output, then its gradient; Megatron-LM's fused loss holds one more copy in fp32.
  ends.logits_transient = (strategy.stack.fused_loss ? 6 : 2) * logits;
  return ends;
}

std::int64_t score_bytes(const Model& model, const Strategy& strategy) {
  if (strategy.stack.attention != workload::AttentionKernel::unfused) return 0;
  const Cut rank = workload::cut(model, strategy);
  return 2 * rank.samples * rank.heads * rank.sequence * rank.keys;
}

}  // namespace manyworlds::core::memory
