// Activations of layers, embedding and head.
#include "core/memory/activations.hpp"

#include <algorithm>
#include <vector>

#include "core/memory/allocator.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/layer/context_exchange.hpp"
#include "core/workload/layer/expert_load.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Cut;
using workload::Model;
using workload::Operator;
using workload::Strategy;

Kept tensor(std::int64_t bytes) {
  return {bytes, reserved_bytes(bytes) - bytes};
}

/// Each operator's input, and what is inside attention, as one tensor.
Kept kept(const std::vector<Operator>& operators) {
  Kept sum;
  for (const Operator& each : operators)
    for (std::int64_t i = 0; i < each.tensors; ++i) {
      sum += tensor(each.kept_bytes);
      sum += tensor(each.core_bytes);
    }
  return sum;
}

Kept held(const std::vector<Operator>& operators) {
  Kept sum;
  for (const Operator& each : operators) sum += tensor(each.weight_bytes);
  return sum;
}

/// Gradients before and after the feed-forward layer's activation function, or before and after the softmax of
/// attention scores, or keys and values gathered from all ranks and their gradients, whichever are larger; with them
/// that of the residual stream, and those of copied experts.
std::int64_t working_bytes(const Model& model, const Strategy& strategy, workload::LayerKind kind,
                           std::int64_t expert_rank) {
  const Cut rank = workload::cut(model, strategy, kind);
  const std::int64_t widths = model.activation == workload::Activation::swiglu ? 3 : 2;
  std::int64_t inner = rank.tokens * rank.ffn, late = 0, copies = 0;
  if (kind.experts) {
    const workload::ExpertLoad load = workload::expert_load(model, strategy, kind);
    const std::int64_t rows = workload::rank_load(model, strategy, load, expert_rank).computed;
    inner = rows * rank.expert_ffn;
    // Gradients of weights that are made late need the gradient of the experts' output until then.
    if (strategy.stack.delay_expert_weights) late = rows * rank.hidden;
    copies = static_cast<std::int64_t>(load.copied.size()) * workload::gradient_bytes(strategy) *
             workload::expert_parameters(model, strategy.etp);
  }
  const std::int64_t feed_forward = 2 * (widths * inner + late) + copies;
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

LayerBytes layer_bytes(const Model& model, const Strategy& strategy, const LayerAt& at) {
  std::vector<Operator> operators = workload::layer_operators(model, strategy, at.kind, at.expert_rank);
  workload::keep_less(operators, at.keeping, workload::cut(model, strategy));
  LayerBytes layer;
  layer.kept = kept(operators);
  layer.away = workload::away_bytes(operators, at.keeping);
  layer.held = held(operators);
  layer.recomputed = workload::most_remade(operators);
  layer.working = working_bytes(model, strategy, at.kind, at.expert_rank);
  if (!strategy.stack.gradient_accumulation_fusion) layer.working += largest_gradient(operators);
  return layer;
}

EndBytes end_bytes(const Model& model, const Strategy& strategy) {
  const std::int64_t logits = workload::cut(model, strategy).logits();
  EndBytes ends;
  ends.embedding = kept(workload::embedding_operators(model, strategy));
  std::vector<Operator> head = workload::head_operators(model, strategy);
  head.back().kept_bytes -= 4 * logits;
  ends.head_held = held(head);
  ends.head = kept(head);
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
