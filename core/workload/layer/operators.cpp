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

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::Dtype;
using compute::fused_attention;
using compute::KernelClass;
using compute::memory_bound;

/// Scores = Q K^T, softmax (scale and mask fused), dropout, values = P V; nothing fused across them. Without dropout
/// the softmax's output is the second GEMM's input and is kept once.
void add_unfused_attention(std::vector<Operator>& operators, const Cut& rank, bool dropout) {
  const std::int64_t s = rank.sequence, keys = rank.keys, d = rank.head_dim, v = rank.value_dim;
  const std::int64_t batch = rank.samples * rank.heads, scores = batch * s * keys;
  Operator score;
  score.name = "attention_scores";
  score.kept_bytes = score.input_bytes = 2 * rank.tokens * (rank.heads + rank.kv_heads) * d;
  score.forward.push_back(kernel(batched_gemm(score.name, s, keys, d, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_query_gradient", s, d, keys, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_key_gradient", keys, d, s, batch)));

  Operator value;
  value.name = "attention_values";
  value.kept_bytes = value.input_bytes = 2 * rank.tokens * rank.kv_heads * v;
  value.core_bytes = dropout ? 2 * scores : 0;
  value.forward.push_back(kernel(batched_gemm(value.name, s, v, keys, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_probability_gradient", s, keys, v, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_value_gradient", keys, v, s, batch)));

  operators.push_back(score);
  operators.push_back(elementwise("softmax", scores, 4, 6, 0));
  operators.back().core_bytes = 2 * scores;
  if (dropout) {
    operators.push_back(elementwise("attention_dropout", scores, 5, 5, 0));
    operators.back().core_bytes = scores;
  }
  operators.push_back(value);
}

/// Scores are never written: beside Q, K and V only a logarithm per query and head is kept, in fp32. Causal kernels
/// look at half of the pairs.
void add_fused_attention(std::vector<Operator>& operators, const Cut& rank, AttentionKernel kind) {
  const bool early = kind == AttentionKernel::flash;
  const auto pass = [&](KernelClass kernel_class) {
    return kernel(fused_attention("attention", kernel_class, rank.sequence, rank.keys, rank.pairs, rank.head_dim,
                                  rank.value_dim, rank.samples * rank.heads));
  };
  Operator made;
  made.name = "attention";
  made.input_bytes = 2 * rank.tokens * rank.qkv_width();
  made.kept_bytes = made.input_bytes + 4 * rank.tokens * rank.heads;
  made.forward.push_back(pass(early ? KernelClass::flash_forward : KernelClass::cudnn_forward));
  made.backward.push_back(pass(early ? KernelClass::flash_backward : KernelClass::cudnn_backward));
  operators.push_back(made);
}

/// Keys and values that heads share are repeated for each of them, and the gradients of all that share one added up. A
/// rank that has no others' keys keeps them so.
void repeat_keys(std::vector<Operator>& core, const Cut& rank) {
  const std::int64_t width = 2 * rank.samples * rank.keys * (rank.head_dim + rank.value_dim);
  Operator made;
  made.name = "repeat_keys";
  if (rank.keys == rank.sequence) made.kept_bytes = width * (rank.heads - rank.kv_heads);
  made.forward.push_back(kernel(memory_bound(made.name, width * (rank.kv_heads + rank.heads))));
  made.backward.push_back(kernel(memory_bound(made.name, width * (rank.kv_heads + rank.heads))));
  core.insert(core.begin(), std::move(made));
}

/// On one context-parallel rank: all of it; or what a block of keys of one rank's tokens takes, once for each block; or
/// that of its tokens with all keys, or of its heads with all tokens.
std::vector<Operator> attention_core(const Cut& rank, const Strategy& strategy, bool dropout) {
  const std::int64_t cp = strategy.cp;
  const bool in_ring = cp > 1 && strategy.cp_comm == ContextExchange::ring,
             by_heads = cp > 1 && strategy.cp_comm == ContextExchange::ulysses;
  const Cut seen = in_ring ? block_of_ring(rank, cp) : by_heads ? turned_to_heads(rank, cp) : rank;
  std::vector<Operator> operators;
  if (strategy.stack.attention == AttentionKernel::unfused)
    add_unfused_attention(operators, seen, dropout);
  else
    add_fused_attention(operators, seen, strategy.stack.attention);
  if (!strategy.stack.grouped_query_fusion && rank.kv_heads < rank.heads) repeat_keys(operators, seen);
  if (in_ring)
    operators = {round_the_ring(operators, rank, cp)};
  else if (by_heads)
    operators = turn_to_heads(operators, rank);
  else if (cp > 1)
    operators = gather_keys(operators, rank, cp);
  for (Operator& each : operators) {
    each.part_of = again::core_attn;
    if (!by_heads) each.input_of = again::mla_up_proj;  // what is kept has been exchanged
    each.offloaded_as = away::core_attn;
  }
  return operators;
}

void add_attention_input(std::vector<Operator>& operators, const Model& model, const Cut& rank, Dtype dtype) {
  if (model.is_latent()) return add_latent_attention_input(operators, model, rank, dtype);
  operators.push_back(column_parallel(rank, {"qkv", rank.hidden, rank.qkv_width(), model.biases, dtype}));
  takes(operators.back(), again::layernorm);
  operators.back().offloaded_as = away::qkv_linear;
  const std::int64_t turned = rank.tokens * (rank.heads + rank.kv_heads) * rank.head_dim;
  if (model.query_key_norm) operators.push_back(norm("query_key_norm", turned));
  if (model.position == Position::rotary) operators.push_back(rotary(rank, turned));
}

void add_feed_forward(std::vector<Operator>& operators, const Model& model, const Cut& rank, Dtype dtype) {
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * rank.ffn : rank.ffn;
  const std::size_t first = operators.size();
  operators.push_back(column_parallel(rank, {"mlp_up", rank.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, rank, rank.tokens * rank.ffn));
  operators.push_back(row_parallel(rank, {"mlp_down", rank.ffn, rank.hidden, model.biases, dtype}));
  Operator* const mlp = &operators[first];
  takes(mlp[0], again::mlp_norm);
  takes(mlp[1], again::mlp);
  takes(mlp[2], again::mlp | again::mlp_act);
  for (std::size_t i = 0; i < 3; ++i) {
    mlp[i].part_of = again::mlp | (i == 1 ? again::mlp_act : 0);
    mlp[i].offloaded_as = away::mlp_fc1 << i;
  }
}

/// Loss over a vocabulary cut over ranks, as Megatron-LM's fused cross entropy: pass one casts to fp32 (kept, counted
/// as logits) and finds the maximum, pass two exponentiates and sums; each ends in an all-reduce over the tokens.
Operator cross_entropy(const Cut& rank) {
  Operator made;
  made.name = "cross_entropy";
  made.kept_bytes = 4 * rank.logits();
  made.forward.push_back(kernel(memory_bound("loss_maximum", 6 * rank.logits())));
  if (rank.tensor > 1) block_on(made.forward, "loss_maximum", collective::Kind::all_reduce, 4 * rank.tokens);
  made.forward.push_back(kernel(memory_bound("loss_exponentials", 8 * rank.logits())));
  if (rank.tensor > 1) block_on(made.forward, "loss_sum", collective::Kind::all_reduce, 8 * rank.tokens);
  made.forward.push_back(kernel(memory_bound("loss", 12 * rank.tokens)));
  made.backward.push_back(kernel(memory_bound("loss_gradient", 6 * rank.logits())));
  return made;
}

std::int64_t matrix_flops(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const Tape* tape : {&each.forward, &each.backward})
      for (const Work& work : *tape) sum += work.kernel.flops;
  return sum;
}

}  // namespace

std::vector<Operator> embedding_operators(const Model& model, const Strategy& strategy) {
  using collective::Kind;
  const Cut rank = cut(model, strategy);
  const std::int64_t whole = rank.tokens * rank.hidden, piece = rank.region_tokens * rank.hidden;
  // Each rank looks up its part of the vocabulary; the gradient adds fp32 rows (read, write) to the table's.
  Operator lookup = elementwise("embedding_lookup", whole, 4, 10, 0);
  if (rank.tensor > 1)
    block_on(lookup.forward, lookup.name, rank.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, 2 * whole);
  if (rank.sequence_parallel) {
    Tape gathered;
    block_on(gathered, lookup.name, Kind::all_gather, 2 * whole);
    lookup.backward.insert(lookup.backward.begin(), gathered.begin(), gathered.end());
  }
  std::vector<Operator> operators{lookup};
  if (model.position == Position::learned) operators.push_back(elementwise("position_embedding", piece, 6, 10, 0));
  if (model.dropout) operators.push_back(elementwise("embedding_dropout", piece, 5, 5, piece));
  return operators;
}

std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy, LayerKind kind,
                                      std::int64_t expert_rank) {
  const Cut rank = cut(model, strategy, kind);
  const Dtype dtype = dtype_of(strategy.stack.precision);
  std::vector<Operator> operators;
  operators.push_back(branch_norm("attention_norm", rank));
  operators.back().part_of = again::layernorm;
  operators.back().offloaded_as = away::attn_norm;
  add_attention_input(operators, model, rank, dtype);
  for (Operator& each : attention_core(rank, strategy, model.dropout)) operators.push_back(std::move(each));
  operators.push_back(row_parallel(rank, {"attention_output", rank.value_width(), rank.hidden, model.biases, dtype}));
  operators.back().offloaded_as = away::attn_proj;
  operators.push_back(residual("attention_residual", rank, model));
  operators.push_back(branch_norm("mlp_norm", rank));
  operators.back().part_of = again::mlp_norm;
  operators.back().offloaded_as = away::mlp_norm;
  if (kind.experts)
    add_experts(operators, model, strategy, {kind, expert_rank}, rank, dtype);
  else
    add_feed_forward(operators, model, rank, dtype);
  operators.push_back(residual("mlp_residual", rank, model));
  return operators;
}

std::vector<Operator> head_operators(const Model& model, const Strategy& strategy) {
  Cut rank = cut(model, strategy);
  rank.overlap_tensor = false;  // of layers alone
  return {norm("final_norm", rank.region_tokens * rank.hidden),
          column_parallel(rank, {"vocabulary", rank.hidden, rank.vocabulary, false}), cross_entropy(rank)};
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
