// Operators of the embedding, of a layer and of the head. Bytes per element are those of fused kernels as Megatron-LM
// runs them: bf16 tensors (2 bytes) once per read and per write, dropout masks 1 byte, main gradients fp32.
#include "core/workload/operators.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

using compute::attention_gemm;
using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

Work kernel(compute::Kernel kernel) {
  Work work;
  work.kernel = std::move(kernel);
  return work;
}

void start(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes) {
  Work work;
  work.kind = Work::Kind::start;
  work.collective = kind;
  work.bytes = bytes;
  work.name = name;
  tape.push_back(work);
}

void join(Tape& tape) {
  Work work;
  work.kind = Work::Kind::join;
  tape.push_back(work);
}

/// A collective that the next kernel needs at once.
void block_on(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes) {
  start(tape, name, kind, bytes);
  join(tape);
}

/// Memory-bound operator over `elements`, with bytes per element in each direction (0: no kernel).
Operator elementwise(std::string_view name, std::int64_t elements, std::int64_t forward, std::int64_t backward,
                     std::int64_t kept_bytes) {
  Operator made;
  made.name = name;
  made.kept_bytes = kept_bytes;
  if (forward > 0) made.forward.push_back(kernel(memory_bound(name, forward * elements)));
  if (backward > 0) made.backward.push_back(kernel(memory_bound(name, backward * elements)));
  return made;
}

/// Forward: read x, write y. Backward: read x and dy, write dx. Bytes per element 4 and 6.
Operator norm(std::string_view name, const Cut& rank) {
  const std::int64_t elements = rank.region_tokens * rank.hidden;
  return elementwise(name, elements, 4, 6, 2 * elements);
}

/// The norm that opens a residual branch: its backward also adds the gradient that came past the branch (r, r, w).
Operator branch_norm(std::string_view name, const Cut& rank) {
  Operator made = norm(name, rank);
  made.backward.push_back(kernel(memory_bound("residual_gradient", 6 * rank.region_tokens * rank.hidden)));
  return made;
}

/// Bias, dropout and residual in one kernel. Forward: read x and residual, write y (and mask). Backward: dropout only.
Operator residual(std::string_view name, const Cut& rank, bool dropout) {
  const std::int64_t elements = rank.region_tokens * rank.hidden;
  return elementwise(name, elements, dropout ? 7 : 6, dropout ? 5 : 0, dropout ? elements : 0);
}

/// Output features cut over ranks. The input is whole on every rank; under sequence parallelism it is gathered from
/// its pieces, only the piece is kept, and the backward pass gathers again behind the input gradient's GEMM
/// (Korthikanti et al., section 4.2.2).
Operator column_parallel(std::string_view name, const Cut& rank, std::int64_t in, std::int64_t out, bool bias) {
  using collective::Kind;
  Operator made;
  made.name = name;
  made.kept_bytes = 2 * rank.region_tokens * in;
  const std::int64_t whole = 2 * rank.tokens * in;
  if (rank.sequence_parallel) block_on(made.forward, name, Kind::all_gather, whole);
  made.forward.push_back(kernel(gemm(name, rank.tokens, out, in)));

  if (rank.sequence_parallel) start(made.backward, name, Kind::all_gather, whole);
  made.backward.push_back(kernel(gemm(name, rank.tokens, in, out)));
  if (rank.tensor > 1)
    block_on(made.backward, name, rank.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, whole);
  made.backward.push_back(kernel(weight_gradient(name, out, in, rank.tokens)));
  if (bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.tokens * out)));
  return made;
}

/// Input features cut over ranks; the partial outputs are added up, and scattered under sequence parallelism.
Operator row_parallel(std::string_view name, const Cut& rank, std::int64_t in, std::int64_t out, bool bias) {
  using collective::Kind;
  Operator made;
  made.name = name;
  made.kept_bytes = 2 * rank.tokens * in;
  const std::int64_t whole = 2 * rank.tokens * out;
  made.forward.push_back(kernel(gemm(name, rank.tokens, out, in)));
  if (rank.tensor > 1)
    block_on(made.forward, name, rank.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, whole);

  if (bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.region_tokens * out)));
  if (rank.sequence_parallel) block_on(made.backward, name, Kind::all_gather, whole);
  made.backward.push_back(kernel(gemm(name, rank.tokens, in, out)));
  made.backward.push_back(kernel(weight_gradient(name, out, in, rank.tokens)));
  return made;
}

/// Scores = Q K^T, softmax (scale and mask fused), dropout, values = P V; nothing fused across them. Without dropout
/// the softmax's output is the second GEMM's input and is kept once.
void add_attention_core(std::vector<Operator>& operators, const Cut& rank, bool dropout) {
  const std::int64_t s = rank.sequence, d = rank.head_dim, batch = rank.samples * rank.heads;
  const std::int64_t scores = batch * s * s;
  Operator score;
  score.name = "attention_scores";
  score.kept_bytes = 2 * rank.tokens * (rank.heads + rank.kv_heads) * d;
  score.forward.push_back(kernel(attention_gemm(score.name, s, s, d, batch)));
  score.backward.push_back(kernel(attention_gemm("attention_query_gradient", s, d, s, batch)));
  score.backward.push_back(kernel(attention_gemm("attention_key_gradient", s, d, s, batch)));

  Operator value;
  value.name = "attention_values";
  value.kept_bytes = 2 * rank.tokens * rank.kv_heads * d;
  value.core_bytes = dropout ? 2 * scores : 0;
  value.forward.push_back(kernel(attention_gemm(value.name, s, d, s, batch)));
  value.backward.push_back(kernel(attention_gemm("attention_probability_gradient", s, s, d, batch)));
  value.backward.push_back(kernel(attention_gemm("attention_value_gradient", s, d, s, batch)));

  const std::size_t first = operators.size();
  operators.push_back(score);
  operators.push_back(elementwise("softmax", scores, 4, 6, 0));
  operators.back().core_bytes = 2 * scores;
  if (dropout) {
    operators.push_back(elementwise("attention_dropout", scores, 5, 5, 0));
    operators.back().core_bytes = scores;
  }
  operators.push_back(value);
  for (std::size_t i = first; i < operators.size(); ++i) operators[i].attention_core = true;
}

/// GELU: read x, write y; backward read x and dy, write dx. SwiGLU has two inputs, gate and up.
Operator activation(const Model& model, const Cut& rank) {
  const std::int64_t elements = rank.tokens * rank.ffn;
  return model.activation == Activation::swiglu ? elementwise("swiglu", elements, 6, 10, 4 * elements)
                                                : elementwise("gelu", elements, 4, 6, 2 * elements);
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

std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy) {
  const Cut rank = cut(model, strategy);
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * rank.ffn : rank.ffn;
  std::vector<Operator> operators;
  operators.push_back(branch_norm("attention_norm", rank));
  operators.push_back(column_parallel("qkv", rank, rank.hidden, rank.qkv_width(), model.biases));
  if (model.position == Position::rotary) {
    const std::int64_t turned = rank.tokens * (rank.heads + rank.kv_heads) * rank.head_dim;
    operators.push_back(elementwise("rotary", turned, 4, 4, 0));
  }
  add_attention_core(operators, rank, model.dropout);
  operators.push_back(row_parallel("attention_output", rank, rank.query_width(), rank.hidden, model.biases));
  operators.push_back(residual("attention_residual", rank, model.dropout));
  operators.push_back(branch_norm("mlp_norm", rank));
  operators.push_back(column_parallel("mlp_up", rank, rank.hidden, up, model.biases));
  operators.push_back(activation(model, rank));
  operators.push_back(row_parallel("mlp_down", rank, rank.ffn, rank.hidden, model.biases));
  operators.push_back(residual("mlp_residual", rank, model.dropout));
  return operators;
}

std::vector<Operator> head_operators(const Model& model, const Strategy& strategy) {
  const Cut rank = cut(model, strategy);
  return {norm("final_norm", rank), column_parallel("vocabulary", rank, rank.hidden, rank.vocabulary, false),
          cross_entropy(rank)};
}

std::int64_t model_flops_per_sequence(const Model& model) {
  const std::int64_t vocabulary = 6 * model.sequence * model.hidden * model.vocabulary;
  return model.layers * matrix_flops(layer_operators(model, Strategy{})) + vocabulary;
}

}  // namespace manyworlds::core::workload
