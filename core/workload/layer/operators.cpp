// Operators of the embedding, of a layer and of the head. Bytes per element are those of fused kernels as Megatron-LM
// runs them: bf16 tensors (2 bytes) once per read and per write, dropout masks 1 byte, main gradients fp32.
#include "core/workload/layer/operators.hpp"

#include <map>
#include <utility>

#include "core/workload/layer/context_exchange.hpp"
#include "core/workload/layer/context_ring.hpp"
#include "core/workload/layer/experts.hpp"
#include "core/workload/layer/latent_attention.hpp"
#include "core/workload/layer/operator_parts.hpp"
#include "core/workload/layer/sufficient_factors.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::Dtype;
using compute::fused_attention;
using compute::KernelClass;
using compute::memory_bound;

/// Scale, mask and softmax of attention's scores: one kernel, or Megatron-LM's forward_torch_softmax() under
/// apply_query_key_layer_scaling (v2.5, megatron/model/fused_softmax.py): a cast to fp32, scale, mask, softmax and a
/// cast back, each with its gradient. Saved is the result, in fp32 that of the softmax; without dropout, in 16 bits as
/// well, for the GEMM behind it.
Operator masked_softmax(const RankShapes& shapes, std::int64_t scores, bool dropout) {
  const bool fused = shapes.stack.masked_softmax_fusion;
  Operator result =
      fused ? elementwise("softmax", scores, 4, 6, 0) : chain("softmax", scores, {6, 8, 8, 8, 6}, {6, 12, 8, 8, 6}, 0);
  result.attention_core_bytes = (fused ? 2 : dropout ? 4 : 6) * scores;
  return result;
}

/// Scores = Q K^T, masked softmax, dropout, values = P V, with no fusion across them. Without dropout
/// the softmax's output is the second GEMM's input and is saved once.
void add_unfused_attention(std::vector<Operator>& operators, const RankShapes& shapes, bool dropout) {
  const std::int64_t s = shapes.sequence, keys = shapes.keys, d = shapes.head_dim, v = shapes.value_dim;
  const std::int64_t batch = shapes.samples * shapes.heads, scores = batch * s * keys;
  Operator score;
  score.name = "attention_scores";
  score.saved_bytes = score.module_output_bytes = 2 * shapes.tokens * (shapes.heads + shapes.kv_heads) * d;
  score.forward.push_back(kernel(batched_gemm(score.name, s, keys, d, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_query_gradient", s, d, keys, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_key_gradient", keys, d, s, batch)));

  Operator value;
  value.name = "attention_values";
  value.saved_bytes = value.module_output_bytes = 2 * shapes.tokens * shapes.kv_heads * v;
  value.attention_core_bytes = dropout ? 2 * scores : 0;
  value.forward.push_back(kernel(batched_gemm(value.name, s, v, keys, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_probability_gradient", s, keys, v, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_value_gradient", keys, v, s, batch)));

  operators.push_back(score);
  operators.push_back(masked_softmax(shapes, scores, dropout));
  if (dropout) {
    operators.push_back(elementwise("attention_dropout", scores, 5, 5, 0));
    operators.back().attention_core_bytes = scores;
  }
  operators.push_back(value);
}

/// Returns the kernels of a forward and of a backward pass.
std::pair<KernelClass, KernelClass> attention_classes(AttentionKernel kind) {
  if (kind == AttentionKernel::flash) return {KernelClass::flash_forward, KernelClass::flash_backward};
  if (kind == AttentionKernel::flash2) return {KernelClass::flash2_forward, KernelClass::flash2_backward};
  return {KernelClass::cudnn_forward, KernelClass::cudnn_backward};
}

/// Scores are never written: in addition to Q, K and V only one logarithm per query and head is saved, in fp32. Causal
/// kernels compute half of the pairs.
void add_fused_attention(std::vector<Operator>& operators, const RankShapes& shapes, AttentionKernel kind) {
  const auto pass = [&](KernelClass kernel_class) {
    return kernel(fused_attention(
        "attention", kernel_class,
        {shapes.sequence, shapes.keys, shapes.pairs, shapes.head_dim, shapes.value_dim, shapes.samples * shapes.heads,
         shapes.samples * (shapes.stack.grouped_query_fusion ? shapes.kv_heads : shapes.heads), shapes.window,
         shapes.cut_by_mask}));
  };
  Operator result;
  result.name = "attention";
  result.module_output_bytes = 2 * shapes.tokens * shapes.qkv_width();
  result.saved_bytes = result.module_output_bytes + 4 * shapes.tokens * shapes.heads;
  const auto [forward, backward] = attention_classes(kind);
  result.forward.push_back(pass(forward));
  result.backward.push_back(pass(backward));
  operators.push_back(result);
}

/// Repeats keys and values for each head that shares them; the backward pass sums the gradients of these heads. A rank
/// without keys of other ranks saves the repeated tensors.
void repeat_keys(std::vector<Operator>& core, const RankShapes& shapes) {
  const std::int64_t width = 2 * shapes.samples * shapes.keys * (shapes.head_dim + shapes.value_dim);
  Operator result;
  result.name = "repeat_keys";
  if (shapes.keys == shapes.sequence) result.saved_bytes = width * (shapes.heads - shapes.kv_heads);
  result.forward.push_back(kernel(memory_bound(result.name, width * (shapes.kv_heads + shapes.heads))));
  result.backward.push_back(kernel(memory_bound(result.name, width * (shapes.kv_heads + shapes.heads))));
  core.insert(core.begin(), std::move(result));
}

/// Returns the attention core of one context-parallel rank: all of attention without context parallelism; with a ring
/// or gathered blocks, its tokens and one block of keys, once for each block; otherwise its tokens and all keys, or its
/// heads and all tokens.
std::vector<Operator> attention_core(const RankShapes& shapes, const Strategy& strategy, bool dropout) {
  const std::int64_t cp = strategy.cp;
  const bool in_ring = cp > 1 && strategy.cp_comm == ContextExchange::ring,
             by_blocks = cp > 1 && strategy.cp_comm == ContextExchange::gathered_blocks,
             by_heads = cp > 1 && strategy.cp_comm == ContextExchange::ulysses;
  const RankShapes core_shapes = in_ring || by_blocks ? ring_block_shapes(shapes, cp)
                                 : by_heads           ? head_parallel_shapes(shapes, cp)
                                                      : shapes;
  std::vector<Operator> operators;
  if (strategy.stack.attention == AttentionKernel::unfused)
    add_unfused_attention(operators, core_shapes, dropout);
  else
    add_fused_attention(operators, core_shapes, strategy.stack.attention);
  if (by_blocks) operators = {attend_to_gathered_blocks(operators.front(), shapes, cp)};
  if (!strategy.stack.grouped_query_fusion && shapes.kv_heads < shapes.heads) repeat_keys(operators, core_shapes);
  if (in_ring)
    operators = {ring_attention(operators, shapes, cp)};
  else if (by_heads)
    operators = exchange_tokens_for_heads(operators, shapes);
  else if (cp > 1 && !by_blocks)
    operators = gather_keys(operators, shapes, cp);
  for (Operator& each : operators) {
    each.in_modules = recompute::core_attn;
    if (!by_heads) each.input_from = recompute::mla_up_proj;  // otherwise the saved inputs are those after the exchange
    each.offload_module = offload::core_attn;
  }
  return operators;
}

void add_attention_input(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes, Dtype dtype) {
  if (model.is_latent()) return add_latent_attention_input(operators, model, shapes, dtype);
  Linear qkv{"qkv", shapes.hidden, shapes.qkv_width(), model.biases, dtype};
  if (!shapes.stack.projection_fusion)
    qkv.parts = {shapes.query_width(), shapes.kv_heads * shapes.head_dim, shapes.kv_heads * shapes.value_dim};
  operators.push_back(column_parallel(shapes, qkv));
  mark_input_from(operators.back(), recompute::layernorm);
  operators.back().offload_module = offload::qkv_linear;
  const std::int64_t rows = shapes.tokens * (shapes.heads + shapes.kv_heads);
  if (model.query_key_norm) operators.push_back(norm("query_key_norm", model, shapes, rows, shapes.head_dim));
  if (model.position == Position::rotary) operators.push_back(rotary(shapes, rows * shapes.head_dim));
}

void add_feed_forward(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes, Dtype dtype) {
  const bool gated = model.activation == Activation::swiglu;
  Linear up{"mlp_up", shapes.hidden, gated ? 2 * shapes.ffn : shapes.ffn, model.biases, dtype};
  if (gated && !shapes.stack.projection_fusion) up.parts = {shapes.ffn, shapes.ffn};
  const std::size_t first = operators.size();
  operators.push_back(column_parallel(shapes, up));
  operators.push_back(activation(model, shapes, shapes.tokens * shapes.ffn));
  operators.push_back(row_parallel(shapes, {"mlp_down", shapes.ffn, shapes.hidden, model.biases, dtype}));
  Operator* const mlp = &operators[first];
  mark_input_from(mlp[0], recompute::mlp_norm);
  mark_input_from(mlp[1], recompute::mlp);
  mark_input_from(mlp[2], recompute::mlp | recompute::mlp_act);
  for (std::size_t i = 0; i < 3; ++i) {
    mlp[i].in_modules = recompute::mlp | (i == 1 ? recompute::mlp_act : 0);
    mlp[i].offload_module = offload::mlp_fc1 << i;
  }
}

/// Loss by PyTorch's kernels, one by one: a cast to fp32, a log-softmax, its gradient from one of zeros, and a cast
/// back; over a sharded vocabulary maximum, difference, exponential, sum and difference, and as many backward
/// (torch.distributed.tensor.parallel, loss.py). Bytes of a logit; rows that a kernel reads again come from caches.
Operator cross_entropy_by_parts(const RankShapes& shapes) {
  const bool sharded = shapes.tensor_parallel > 1;
  Operator result = sharded ? chain("cross_entropy", shapes.logits(), {6, 4}, {4, 8, 8, 12, 6}, 4 * shapes.logits())
                            : chain("cross_entropy", shapes.logits(), {6, 8}, {4, 12, 6}, 4 * shapes.logits());
  if (!sharded) return result;
  block_on(result.forward, "loss_maximum", collective::Kind::all_reduce, 4 * shapes.tokens);
  for (const std::int64_t bytes : {8, 8, 4})
    result.forward.push_back(kernel(memory_bound("loss_exponentials", bytes * shapes.logits())));
  block_on(result.forward, "loss_sum", collective::Kind::all_reduce, 4 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss", 8 * shapes.logits())));
  return result;
}

/// Loss over a sharded vocabulary, as Megatron-LM's fused cross entropy: pass one casts to fp32 (saved, counted as
/// logits) and finds the maximum, pass two exponentiates and sums; each ends in an all-reduce over the tokens.
Operator cross_entropy(const RankShapes& shapes) {
  if (!shapes.stack.cross_entropy_fusion) return cross_entropy_by_parts(shapes);
  Operator result;
  result.name = "cross_entropy";
  result.saved_bytes = 4 * shapes.logits();
  result.forward.push_back(kernel(memory_bound("loss_maximum", 6 * shapes.logits())));
  if (shapes.tensor_parallel > 1)
    block_on(result.forward, "loss_maximum", collective::Kind::all_reduce, 4 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss_exponentials", 8 * shapes.logits())));
  if (shapes.tensor_parallel > 1) block_on(result.forward, "loss_sum", collective::Kind::all_reduce, 8 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss", 12 * shapes.tokens)));
  result.backward.push_back(kernel(memory_bound("loss_gradient", 6 * shapes.logits())));
  return result;
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
  using collective::Kind;
  const RankShapes shapes = rank_shapes(model, strategy);
  const std::int64_t whole = shapes.tokens * shapes.hidden, sp_elements = shapes.sp_region_tokens * shapes.hidden;
  // Each rank looks up its shard of the vocabulary; the gradient adds fp32 rows (read, write) to the table's.
  Operator lookup = elementwise("embedding_lookup", whole, 4, 10, 0);
  if (shapes.tensor_parallel > 1)
    block_on(lookup.forward, lookup.name, shapes.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce,
             2 * whole);
  if (shapes.sequence_parallel) {
    OpList gathered;
    block_on(gathered, lookup.name, Kind::all_gather, 2 * whole);
    lookup.backward.insert(lookup.backward.begin(), gathered.begin(), gathered.end());
  }
  std::vector<Operator> operators{lookup};
  if (model.position == Position::learned)
    operators.push_back(elementwise("position_embedding", sp_elements, 6, 10, 0));
  if (model.dropout) operators.push_back(elementwise("embedding_dropout", sp_elements, 5, 5, sp_elements));
  return operators;
}

std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy, LayerKind kind,
                                      std::int64_t expert_rank) {
  const RankShapes shapes = rank_shapes(model, strategy, kind);
  const Dtype dtype = dtype_of(strategy.stack.precision);
  std::vector<Operator> operators;
  operators.push_back(branch_norm("attention_norm", model, shapes));
  operators.back().in_modules = recompute::layernorm;
  operators.back().offload_module = offload::attn_norm;
  add_attention_input(operators, model, shapes, dtype);
  for (Operator& each : attention_core(shapes, strategy, model.dropout)) operators.push_back(std::move(each));
  operators.push_back(
      row_parallel(shapes, {"attention_output", shapes.value_width(), shapes.hidden, model.biases, dtype}));
  operators.back().offload_module = offload::attn_proj;
  operators.push_back(residual("attention_residual", shapes, model));
  operators.push_back(branch_norm("mlp_norm", model, shapes));
  operators.back().in_modules = recompute::mlp_norm;
  operators.back().offload_module = offload::mlp_norm;
  if (kind.experts)
    add_experts(operators, model, strategy, {kind, expert_rank}, shapes, dtype);
  else
    add_feed_forward(operators, model, shapes, dtype);
  operators.push_back(residual("mlp_residual", shapes, model));
  if (!kind.experts) exchange_factors(operators, strategy, shapes);
  return operators;
}

std::vector<Operator> head_operators(const Model& model, const Strategy& strategy) {
  RankShapes shapes = rank_shapes(model, strategy);
  shapes.overlap_tensor = false;  // applies to layers only
  return {norm("final_norm", model, shapes, shapes.sp_region_tokens, shapes.hidden),
          column_parallel(shapes, {"vocabulary", shapes.hidden, shapes.vocabulary, false}), cross_entropy(shapes)};
}

std::int64_t model_flops_per_sequence(const Model& model) {
  std::int64_t sum = 6 * model.sequence * model.hidden * model.vocabulary;
  std::map<LayerKind, std::int64_t> flops;
  Model balanced = model;
  balanced.routing = nullptr;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = balanced.layer_kind(layer);
    const auto [known, is_new] = flops.try_emplace(kind, 0);
    if (is_new) known->second = matrix_flops(layer_operators(balanced, Strategy{}, kind));
    sum += known->second;
  }
  return sum;
}

}  // namespace manyworlds::core::workload
