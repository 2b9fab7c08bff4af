// Operators of the embedding, of a layer and of the head. Bytes per element are those of fused kernels as Megatron-LM
// runs them: bf16 tensors (2 bytes) once per read and per write, dropout masks 1 byte, main gradients fp32.
#include "core/workload/operators.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::Dtype;
using compute::fused_attention;
using compute::gemm;
using compute::KernelClass;
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

/// A linear layer on one rank, `in` and `out` features wide.
struct Linear {
  std::string_view name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  Dtype dtype = Dtype::bf16;
};

Dtype dtype_of(Precision precision) {
  if (precision == Precision::fp8 || precision == Precision::mxfp8) return Dtype::fp8;
  return precision == Precision::nvfp4 ? Dtype::fp4 : Dtype::bf16;
}

/// What makes a GEMM's input of `elements`: it is read in bf16 and written twice, as both operand layouts need it.
/// FP4 reads it once more, for the scale of the whole tensor.
void quantise(Tape& tape, Dtype dtype, std::int64_t elements) {
  if (dtype == Dtype::fp8) tape.push_back(kernel(memory_bound("quantise", 4 * elements)));
  if (dtype == Dtype::fp4) tape.push_back(kernel(memory_bound("quantise", 5 * elements)));
}

/// A GEMM over all tokens and the collective that brings its input (`before`) or takes its result. With overlap both
/// go ring step by ring step, so that only one step's share of the GEMM has nothing beside it (Transformer Engine's
/// userbuffers).
void gemm_beside(Tape& tape, const Cut& rank, std::string_view name, std::int64_t out, std::int64_t in, Dtype dtype,
                 collective::Kind kind, std::int64_t bytes, bool before) {
  const auto part = [&](std::int64_t tokens) { tape.push_back(kernel(gemm(name, tokens, out, in, dtype))); };
  const std::int64_t step = rank.tokens / rank.tensor;
  if (!rank.overlap_tensor) {
    if (before) block_on(tape, name, kind, bytes);
    part(rank.tokens);
    if (!before) block_on(tape, name, kind, bytes);
    return;
  }
  if (!before) part(step);
  start(tape, name, kind, bytes);
  part(rank.tokens - step);
  join(tape);
  if (before) part(step);
}

/// Output features cut over ranks. The input is whole on every rank; under sequence parallelism it is gathered from
/// its pieces, only the piece is kept, and the backward pass gathers again behind the input gradient's GEMM
/// (Korthikanti et al., section 4.2.2).
Operator column_parallel(const Cut& rank, const Linear& of) {
  using collective::Kind;
  Operator made;
  made.name = of.name;
  made.kept_bytes = 2 * rank.region_tokens * of.in;
  const std::int64_t whole = 2 * rank.tokens * of.in;
  quantise(made.forward, of.dtype, rank.region_tokens * of.in);
  if (rank.sequence_parallel)
    gemm_beside(made.forward, rank, of.name, of.out, of.in, of.dtype, Kind::all_gather, whole, true);
  else
    made.forward.push_back(kernel(gemm(of.name, rank.tokens, of.out, of.in, of.dtype)));

  quantise(made.backward, of.dtype, rank.tokens * of.out);
  if (rank.sequence_parallel) start(made.backward, of.name, Kind::all_gather, whole);
  made.backward.push_back(kernel(gemm(of.name, rank.tokens, of.in, of.out, of.dtype)));
  if (rank.tensor > 1) {
    if (rank.sequence_parallel) join(made.backward);
    start(made.backward, of.name, rank.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, whole);
    if (!rank.overlap_input_gradient) join(made.backward);
  }
  made.backward.push_back(kernel(weight_gradient(of.name, of.out, of.in, rank.tokens, of.dtype)));
  if (of.bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.tokens * of.out)));
  if (rank.tensor > 1 && rank.overlap_input_gradient) join(made.backward);
  return made;
}

/// Input features cut over ranks; the partial outputs are added up, and scattered under sequence parallelism.
Operator row_parallel(const Cut& rank, const Linear& of) {
  using collective::Kind;
  Operator made;
  made.name = of.name;
  made.kept_bytes = 2 * rank.tokens * of.in;
  const std::int64_t whole = 2 * rank.tokens * of.out;
  quantise(made.forward, of.dtype, rank.tokens * of.in);
  if (rank.sequence_parallel) {
    gemm_beside(made.forward, rank, of.name, of.out, of.in, of.dtype, Kind::reduce_scatter, whole, false);
  } else {
    made.forward.push_back(kernel(gemm(of.name, rank.tokens, of.out, of.in, of.dtype)));
    if (rank.tensor > 1) block_on(made.forward, of.name, Kind::all_reduce, whole);
  }

  if (of.bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.region_tokens * of.out)));
  quantise(made.backward, of.dtype, rank.region_tokens * of.out);
  if (rank.sequence_parallel)
    gemm_beside(made.backward, rank, of.name, of.in, of.out, of.dtype, Kind::all_gather, whole, true);
  else
    made.backward.push_back(kernel(gemm(of.name, rank.tokens, of.in, of.out, of.dtype)));
  made.backward.push_back(kernel(weight_gradient(of.name, of.out, of.in, rank.tokens, of.dtype)));
  return made;
}

/// Scores = Q K^T, softmax (scale and mask fused), dropout, values = P V; nothing fused across them. Without dropout
/// the softmax's output is the second GEMM's input and is kept once.
void add_unfused_attention(std::vector<Operator>& operators, const Cut& rank, bool dropout) {
  const std::int64_t s = rank.sequence, d = rank.head_dim, batch = rank.samples * rank.heads;
  const std::int64_t scores = batch * s * s;
  Operator score;
  score.name = "attention_scores";
  score.kept_bytes = 2 * rank.tokens * (rank.heads + rank.kv_heads) * d;
  score.forward.push_back(kernel(batched_gemm(score.name, s, s, d, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_query_gradient", s, d, s, batch)));
  score.backward.push_back(kernel(batched_gemm("attention_key_gradient", s, d, s, batch)));

  Operator value;
  value.name = "attention_values";
  value.kept_bytes = 2 * rank.tokens * rank.kv_heads * d;
  value.core_bytes = dropout ? 2 * scores : 0;
  value.forward.push_back(kernel(batched_gemm(value.name, s, d, s, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_probability_gradient", s, s, d, batch)));
  value.backward.push_back(kernel(batched_gemm("attention_value_gradient", s, d, s, batch)));

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
  made.kept_bytes = 2 * rank.tokens * rank.qkv_width() + 4 * rank.tokens * rank.heads;
  made.forward.push_back(pass(early ? KernelClass::flash_forward : KernelClass::cudnn_forward));
  made.backward.push_back(pass(early ? KernelClass::flash_backward : KernelClass::cudnn_backward));
  operators.push_back(made);
}

void add_attention_core(std::vector<Operator>& operators, const Cut& rank, bool dropout, AttentionKernel kind) {
  const std::size_t first = operators.size();
  if (kind == AttentionKernel::unfused)
    add_unfused_attention(operators, rank, dropout);
  else
    add_fused_attention(operators, rank, kind);
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
  const Dtype dtype = dtype_of(strategy.stack.precision);
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * rank.ffn : rank.ffn;
  std::vector<Operator> operators;
  operators.push_back(branch_norm("attention_norm", rank));
  operators.push_back(column_parallel(rank, {"qkv", rank.hidden, rank.qkv_width(), model.biases, dtype}));
  if (model.position == Position::rotary) {
    const std::int64_t turned = rank.tokens * (rank.heads + rank.kv_heads) * rank.head_dim;
    operators.push_back(elementwise("rotary", turned, 4, 4, 0));
  }
  add_attention_core(operators, rank, model.dropout, strategy.stack.attention);
  operators.push_back(row_parallel(rank, {"attention_output", rank.query_width(), rank.hidden, model.biases, dtype}));
  operators.push_back(residual("attention_residual", rank, model.dropout));
  operators.push_back(branch_norm("mlp_norm", rank));
  operators.push_back(column_parallel(rank, {"mlp_up", rank.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, rank));
  operators.push_back(row_parallel(rank, {"mlp_down", rank.ffn, rank.hidden, model.biases, dtype}));
  operators.push_back(residual("mlp_residual", rank, model.dropout));
  return operators;
}

std::vector<Operator> head_operators(const Model& model, const Strategy& strategy) {
  Cut rank = cut(model, strategy);
  rank.overlap_tensor = false;  // of layers alone
  return {norm("final_norm", rank), column_parallel(rank, {"vocabulary", rank.hidden, rank.vocabulary, false}),
          cross_entropy(rank)};
}

std::int64_t model_flops_per_sequence(const Model& model) {
  const std::int64_t vocabulary = 6 * model.sequence * model.hidden * model.vocabulary;
  return model.layers * matrix_flops(layer_operators(model, Strategy{})) + vocabulary;
}

}  // namespace manyworlds::core::workload
