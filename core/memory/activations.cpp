// Activation memory of layers, embedding and head.
#include "core/memory/activations.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/memory/allocator.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/layer/distillation.hpp"
#include "core/workload/layer/layer_input.hpp"
#include "core/workload/layer/loss.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/weights/four_bit_weights.hpp"
#include "core/workload/weights/low_rank_pairs.hpp"

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

/// Returns the working memory of a layer's backward pass at its maximum: that of the part that has most, and the
/// gradients of the residual stream.
std::int64_t working_bytes(const Model& model, const Strategy& strategy, workload::LayerKind kind,
                           std::int64_t expert_rank) {
  std::int64_t maximum = 0, stream = 0;
  workload::for_each_branch(model, kind, [&](const workload::LayerBranch& branch) {
    const workload::PartOnRank on_rank = part_on_rank(branch, strategy, expert_rank);
    maximum = std::max(maximum, branch.part.working_bytes(on_rank));
    stream = std::max(stream, on_rank.shapes.hidden_bytes());
  });
  return maximum + stream;
}

/// Returns the working memory of a layer in a step without a backward pass: the residual stream, and input and output
/// of the operator for which these are most, where an operator's input is what it would save, and its output the input
/// of the next one. Of ranks that share a context it is at least what backward passes need, which gather as many keys.
std::int64_t forward_working_bytes(const Model& model, const Strategy& strategy, workload::LayerKind kind,
                                   std::int64_t expert_rank) {
  const std::vector<Operator> operators = workload::layer_operators(model, strategy, kind, expert_rank);
  const auto input = [&](std::size_t i) {
    if (i == operators.size()) return std::int64_t{0};
    return operators[i].tensor_count * (operators[i].saved_bytes + operators[i].attention_core_bytes);
  };
  std::int64_t maximum = 0, stream = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) maximum = std::max(maximum, input(i) + input(i + 1));
  workload::for_each_branch(model, kind, [&](const workload::LayerBranch& branch) {
    const workload::PartOnRank on_rank = part_on_rank(branch, strategy, expert_rank);
    stream = std::max(stream, on_rank.shapes.boundary_bytes());
    if (strategy.cp > 1) maximum = std::max(maximum, branch.part.working_bytes(on_rank));
  });
  return maximum + stream;
}

/// Returns what a layer keeps of a micro-batch while it generates.
TensorBytes cached(const Model& model, const Strategy& strategy, workload::LayerKind kind, std::int64_t expert_rank) {
  TensorBytes sum;
  workload::for_each_branch(model, kind, [&](const workload::LayerBranch& branch) {
    const auto bytes = branch.part.cached_bytes(part_on_rank(branch, strategy, expert_rank));
    MANYWORLDS_CHECK(bytes, "a part of the layer cannot generate");
    sum += tensor(*bytes);
  });
  return sum;
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
  if (workload::is_inference(model)) {
    LayerBytes layer;
    layer.working = forward_working_bytes(model, strategy, key.kind, key.expert_rank);
    if (workload::is_generation(model)) layer.cached = cached(model, strategy, key.kind, key.expert_rank);
    return layer;
  }
  std::vector<Operator> operators = workload::layer_operators(model, strategy, key.kind, key.expert_rank);
  workload::apply_activation_policy(operators, key.policy, workload::rank_shapes(model, strategy, key.kind));
  if (key.policy.recompute_layer) workload::keep_input(operators, model, strategy, key.kind);
  LayerBytes layer;
  if (key.forward_only) return layer;
  layer.saved = saved(operators);
  layer.offloaded = workload::offloaded_bytes(operators, key.policy);
  layer.weight_gradient_inputs = weight_gradient_inputs(operators);
  layer.recomputed = workload::peak_recomputed_bytes(operators);
  layer.working = working_bytes(model, strategy, key.kind, key.expert_rank);
  if (!strategy.stack.gradient_accumulation_fusion) layer.working += largest_gradient(operators);
  layer.working += 2 * workload::four_bit_weights(operators).largest;
  layer.working = std::max(layer.working, workload::magnitude_working_bytes(operators));
  return layer;
}

namespace {

/// Returns how often logits are in memory beside the fp32 of them that a backward pass needs, times the bytes of each.
std::int64_t transient_logit_bytes(const workload::Stack& stack) {
  // In 16 bits: the GEMM's output, then its gradient. Megatron-LM's fused loss has one more copy in fp32; kernels one
  // by one have a copy in fp32 for those in 16 bits, which are free by then.
  return stack.fused_loss ? 6 : stack.cross_entropy_fusion ? 2 : 4;
}

/// Returns the logits of one chunk of the loss.
std::int64_t chunk_logits(const RankShapes& shapes) {
  return shapes.logits() / shapes.stack.loss_chunks;
}

/// Nothing is saved; logits are there as long as the head computes.
EmbeddingHeadBytes forward_head_bytes(const Model& model, const Strategy& strategy) {
  EmbeddingHeadBytes embedding_head;
  if (!workload::has_head(model)) return embedding_head;
  RankShapes shapes = workload::rank_shapes(model, strategy);
  if (workload::is_generation(model)) shapes.tokens = shapes.samples;
  embedding_head.transient_logits = (4 + transient_logit_bytes(strategy.stack)) * chunk_logits(shapes);
  return embedding_head;
}

/// Replaces what a cross entropy has of the logits by what the divergence from a teacher has of both models' logits,
/// beside the cross entropy's if there is one too: they are computed one after the other.
void add_distillation(EmbeddingHeadBytes& bytes, const Model& model, const RankShapes& shapes) {
  const std::int64_t saved = workload::has_cross_entropy(model) ? bytes.saved_logits : 0;
  bytes.saved_logits = saved + workload::kDistillationSavedBytes * shapes.logits();
  bytes.transient_logits = workload::distillation_transient_bytes(shapes) * shapes.logits();
}

/// Replaces what a loss of all tokens has of logits by what one in chunks has of those of a chunk.
void divide_into_chunks(EmbeddingHeadBytes& bytes, const Model& model, const RankShapes& shapes) {
  const std::int64_t logits = chunk_logits(shapes), elements = shapes.tokens * shapes.hidden;
  bytes.in_chunks = true;
  bytes.saved_logits = bytes.mtp_logits = 0;
  bytes.transient_logits = (4 + transient_logit_bytes(shapes.stack)) * logits;
  bytes.logits_gradient = 2 * logits;
  bytes.cast_working = workload::kChunkedHiddenBytes * elements;
  bytes.chunks_working = bytes.cast_working - workload::kChunkedGradientBytes * elements;
  const std::int64_t weight = workload::is_frozen(model) ? 0 : 2 * shapes.hidden * shapes.vocabulary;
  bytes.head_working = bytes.chunks_working + weight + shapes.hidden_bytes() / shapes.stack.loss_chunks;
}

}  // namespace

EmbeddingHeadBytes embedding_head_bytes(const Model& model, const Strategy& strategy) {
  if (workload::is_inference(model)) return forward_head_bytes(model, strategy);
  const RankShapes shapes = workload::rank_shapes(model, strategy);
  const std::int64_t logits = shapes.logits(), table_bytes = 2 * shapes.hidden * shapes.vocabulary;
  EmbeddingHeadBytes embedding_head;
  embedding_head.embedding = saved(workload::embedding_operators(model, strategy));
  std::vector<Operator> head = workload::head_operators(model, strategy);
  if (head.empty()) return embedding_head;
  for (Operator& each : head)
    if (each.name == "cross_entropy")
      each.saved_bytes -= 4 * logits;
    else if (each.name == "distillation_loss")
      each.saved_bytes = 0;
  embedding_head.head_weight_gradient_inputs = weight_gradient_inputs(head);
  embedding_head.head = saved(head);
  embedding_head.saved_logits = 4 * logits;
  embedding_head.mtp_logits = model.mtp_layers * 4 * logits;
  embedding_head.transient_logits = transient_logit_bytes(strategy.stack) * logits;
  embedding_head.logits_gradient = 2 * logits;
  if (model.teacher) add_distillation(embedding_head, model, shapes);
  // Under sequence parallelism the head's input is gathered again, and its gradient is reduced to the rank's own share.
  const std::int64_t gradient_bytes = workload::is_frozen(model) ? 0 : table_bytes;
  embedding_head.head_working = gradient_bytes + shapes.hidden_bytes();
  if (shapes.sequence_parallel) embedding_head.head_working += shapes.hidden_bytes() + shapes.boundary_bytes();
  if (strategy.stack.loss_chunks > 1) divide_into_chunks(embedding_head, model, shapes);
  embedding_head.embedding_working = workload::is_frozen(model) ? 0 : table_bytes + shapes.hidden_bytes();
  return embedding_head;
}

std::int64_t shared_buffer_bytes(const Model& model, const Strategy& strategy) {
  std::int64_t maximum = 0;
  for (const workload::LayerKind kind : workload::layer_kinds(model))
    workload::for_each_branch(model, kind, [&](const workload::LayerBranch& branch) {
      const workload::PartOnRank on_rank = part_on_rank(branch, strategy, 0);
      maximum = std::max(maximum, branch.part.shared_buffer_bytes(on_rank));
    });
  return model.teacher ? std::max(maximum, shared_buffer_bytes(*model.teacher, strategy)) : maximum;
}

}  // namespace manyworlds::core::memory
