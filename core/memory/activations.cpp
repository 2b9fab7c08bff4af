// Activation memory of layers, embedding and head.
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

using workload::Model;
using workload::Operator;
using workload::RankShapes;
using workload::Strategy;

// Returns the size of one tensor, with the memory that the allocator rounds it up by.
TensorBytes tensor(std::int64_t bytes) {
  return {bytes, reserved_bytes(bytes) - bytes};
}

/// Returns what operators save for their backward passes. Each operator's input is one tensor; so are the tensors
/// inside attention.
TensorBytes saved(const std::vector<Operator>& operators) {
  TensorBytes sum;
  for (const Operator& op : operators)
    for (std::int64_t i = 0; i < op.tensor_count; ++i) {
      sum += tensor(op.saved_bytes);
      sum += tensor(op.attention_core_bytes);
    }
  return sum;
}

// Returns the inputs of weight gradients, which remain until the weight-gradient half of a backward pass.
TensorBytes weight_gradient_inputs(const std::vector<Operator>& operators) {
  TensorBytes sum;
  for (const Operator& op : operators) sum += tensor(op.weight_gradient_input_bytes);
  return sum;
}

/// Returns the keys and values that a rank has gathered from others, with their gradients: of all in 16 bits, or of its
/// own block and of the one that arrives in fp32.
std::int64_t gathered_attention_bytes(const Strategy& strategy, RankShapes shapes) {
  if (strategy.cp == 1) return 0;
  if (strategy.cp_comm == workload::ContextExchange::all_gather)
    return 2 * workload::gathered_key_bytes(shapes, strategy.cp);
  if (strategy.cp_comm != workload::ContextExchange::gathered_blocks) return 0;
  if (!strategy.stack.grouped_query_fusion) shapes.kv_heads = shapes.heads;
  return workload::gathered_key_bytes(shapes, strategy.cp) + 2 * 2 * workload::gathered_key_bytes(shapes, 1);
}

/// Returns the working memory of a layer's backward pass at its maximum: gradients before and after the activation
/// function of the feed-forward layer, or of tokens before and after they are sent back to their ranks, or before and
/// after the softmax of the attention scores, or keys and values gathered from all ranks with their gradients,
/// whichever are largest; plus the gradients of the residual stream and of copied experts. While the activation
/// function's gradient is computed, the gradient of its output has the place of that output, which is no longer saved.
std::int64_t working_bytes(const Model& model, const Strategy& strategy, workload::LayerKind kind,
                           std::int64_t expert_rank) {
  const RankShapes shapes = workload::rank_shapes(model, strategy, kind);
  const std::int64_t ffn_tensors = model.activation == workload::Activation::swiglu ? 2 : 1;
  std::int64_t ffn_elements = shapes.tokens * shapes.ffn, sent_elements = 0, delayed_elements = 0,
               copied_gradient_bytes = 0;
  if (kind.experts) {
    const workload::ExpertLoad load = workload::expert_load(model, strategy, kind);
    const std::int64_t rows = workload::rank_load(model, strategy, load, expert_rank).computed;
    ffn_elements = rows * shapes.expert_ffn;
    sent_elements = (strategy.ep * strategy.etp > 1 ? 2 : 1) * rows * shapes.hidden;
    // Delayed weight gradients need the gradient of the experts' output until they are computed.
    if (strategy.stack.delay_expert_weights) delayed_elements = rows * shapes.hidden;
    copied_gradient_bytes = static_cast<std::int64_t>(load.copied.size()) * workload::gradient_bytes(strategy) *
                            workload::expert_parameters(model, strategy.etp);
  }
  const std::int64_t feed_forward =
      2 * (std::max(ffn_tensors * ffn_elements, sent_elements) + delayed_elements) + copied_gradient_bytes;
  const std::int64_t gathered_bytes = gathered_attention_bytes(strategy, shapes);
  return std::max({feed_forward, 2 * score_bytes(model, strategy), gathered_bytes}) + shapes.hidden_bytes();
}

/// Returns the size of the largest 16-bit weight gradient, which is added to those of earlier micro-batches afterwards.
std::int64_t largest_gradient(const std::vector<Operator>& operators) {
  std::int64_t max_bytes = 0;
  const auto add = [&](const workload::OpList& ops) {
    for (const workload::WorkItem& work : ops)
      if (const workload::KernelWork* kernel = work.kernel(); kernel && kernel->weight_gradient)
        max_bytes = std::max(max_bytes, 2 * kernel->shape.m * kernel->shape.n * kernel->shape.batch);
  };
  for (const Operator& op : operators) {
    add(op.backward);
    if (op.factors) add(op.factors->gradient);
  }
  return max_bytes;
}

}  // namespace

LayerBytes layer_bytes(const Model& model, const Strategy& strategy, const LayerKey& key) {
  std::vector<Operator> operators = workload::layer_operators(model, strategy, key.kind, key.expert_rank);
  workload::apply_activation_policy(operators, key.policy, workload::rank_shapes(model, strategy));
  LayerBytes layer;
  layer.saved = saved(operators);
  layer.offloaded = workload::offloaded_bytes(operators, key.policy);
  layer.weight_gradient_inputs = weight_gradient_inputs(operators);
  layer.recomputed = workload::peak_recomputed_bytes(operators);
  layer.working = working_bytes(model, strategy, key.kind, key.expert_rank);
  if (!strategy.stack.gradient_accumulation_fusion) layer.working += largest_gradient(operators);
  return layer;
}

EmbeddingHeadBytes embedding_head_bytes(const Model& model, const Strategy& strategy) {
  const RankShapes shapes = workload::rank_shapes(model, strategy);
  const std::int64_t logits = shapes.logits(), table_bytes = 2 * shapes.hidden * shapes.vocabulary;
  EmbeddingHeadBytes embedding_head;
  embedding_head.embedding = saved(workload::embedding_operators(model, strategy));
  std::vector<Operator> head = workload::head_operators(model, strategy);
  head.back().saved_bytes -= 4 * logits;
  embedding_head.head_weight_gradient_inputs = weight_gradient_inputs(head);
  embedding_head.head = saved(head);
  embedding_head.saved_logits = 4 * logits;
  // In 16 bits: the GEMM's output, then its gradient. Megatron-LM's fused loss has one more copy in fp32; kernels one
  // by one have a copy in fp32 for those in 16 bits, which are free by then.
  embedding_head.transient_logits = (strategy.stack.fused_loss             ? 6
                                     : strategy.stack.cross_entropy_fusion ? 2
                                                                           : 4) *
                                    logits;
  embedding_head.logits_gradient = 2 * logits;
  // Under sequence parallelism the head's input is gathered again, and its gradient is reduced to the rank's own share.
  embedding_head.head_working = table_bytes + shapes.hidden_bytes();
  if (shapes.sequence_parallel) embedding_head.head_working += shapes.hidden_bytes() + shapes.boundary_bytes();
  embedding_head.embedding_working = table_bytes + shapes.hidden_bytes();
  return embedding_head;
}

std::int64_t score_bytes(const Model& model, const Strategy& strategy) {
  if (strategy.stack.attention != workload::AttentionKernel::unfused) return 0;
  const RankShapes shapes = workload::rank_shapes(model, strategy);
  return 2 * shapes.samples * shapes.heads * shapes.sequence * shapes.keys;
}

}  // namespace manyworlds::core::memory
