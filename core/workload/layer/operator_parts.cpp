// Kernels and collectives of the parts that operators are made of.
#include "core/workload/layer/operator_parts.hpp"

#include <utility>

namespace manyworlds::core::workload {

using compute::Dtype;
using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

Work kernel(compute::Kernel kernel) {
  Work work;
  work.kernel = std::move(kernel);
  return work;
}

Work of_weights(compute::Kernel made) {
  Work work = kernel(std::move(made));
  work.of_weights = true;
  return work;
}

void start(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role) {
  Work work;
  work.kind = Work::Kind::start;
  work.role = role;
  work.collective = kind;
  work.bytes = bytes;
  work.name = name;
  tape.push_back(work);
}

void join(Tape& tape, Awaited awaited) {
  Work work;
  work.kind = Work::Kind::join;
  work.awaited = awaited;
  tape.push_back(work);
}

void append(Tape& to, const Tape& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void block_on(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role) {
  start(tape, name, kind, bytes, role);
  join(tape);
}

Operator elementwise(std::string_view name, std::int64_t elements, std::int64_t forward, std::int64_t backward,
                     std::int64_t kept_bytes) {
  Operator made;
  made.name = name;
  made.kept_bytes = kept_bytes;
  if (forward > 0) made.forward.push_back(kernel(memory_bound(name, forward * elements)));
  if (backward > 0) made.backward.push_back(kernel(memory_bound(name, backward * elements)));
  return made;
}

Operator chain(std::string_view name, std::int64_t elements, std::initializer_list<std::int64_t> forward,
               std::initializer_list<std::int64_t> backward, std::int64_t kept_bytes) {
  Operator made;
  made.name = name;
  made.kept_bytes = kept_bytes;
  for (const std::int64_t bytes : forward) made.forward.push_back(kernel(memory_bound(name, bytes * elements)));
  for (const std::int64_t bytes : backward) made.backward.push_back(kernel(memory_bound(name, bytes * elements)));
  return made;
}

Operator norm(std::string_view name, std::int64_t elements) {
  return elementwise(name, elements, 4, 6, 2 * elements);
}

Operator branch_norm(std::string_view name, const Cut& rank) {
  Operator made = norm(name, rank.region_tokens * rank.hidden);
  made.backward.push_back(kernel(memory_bound("residual_gradient", 6 * rank.region_tokens * rank.hidden)));
  return made;
}

Operator residual(std::string_view name, const Cut& rank, const Model& model) {
  const std::int64_t elements = rank.region_tokens * rank.hidden;
  const bool dropout = model.dropout;
  if (rank.stack.bias_dropout_fusion)
    return elementwise(name, elements, dropout ? 7 : 6, dropout ? 5 : 0, dropout ? elements : 0);
  Operator made = dropout ? chain(name, elements, {5, 6}, {5}, elements) : chain(name, elements, {6}, {}, 0);
  if (model.biases) made.forward.insert(made.forward.begin(), kernel(memory_bound(name, 4 * elements)));
  return made;
}

Operator activation(const Model& model, const Cut& rank, std::int64_t elements) {
  const bool gated = model.activation == Activation::swiglu;
  const std::string_view name = gated ? "swiglu" : "gelu";
  if (rank.stack.bias_activation_fusion)
    return gated ? elementwise(name, elements, 6, 10, 4 * elements) : elementwise(name, elements, 4, 6, 2 * elements);
  Operator made =
      gated ? chain(name, elements, {4, 6}, {6, 6, 6, 8}, 6 * elements) : chain(name, elements, {4}, {6}, 2 * elements);
  if (model.biases) made.forward.insert(made.forward.begin(), kernel(memory_bound(name, (gated ? 8 : 4) * elements)));
  return made;
}

Operator rotary(const Cut& rank, std::int64_t elements) {
  return rank.stack.rope_fusion ? elementwise("rotary", elements, 4, 4, 0)
                                : chain("rotary", elements, {2, 4, 4, 4, 6}, {4, 4, 2, 4, 6}, 0);
}

void add_weight_gradient(Tape& tape, const Cut& rank, compute::Kernel gradient, std::int64_t launches) {
  const std::int64_t elements = gradient.m * gradient.n * gradient.batch;
  const bool fused = rank.stack.gradient_accumulation_fusion;
  if (!fused) gradient.bytes -= 6 * elements;
  tape.push_back(of_weights(std::move(gradient)));
  tape.back().launches = launches;
  if (fused) return;
  tape.push_back(of_weights(memory_bound("accumulate_gradient", 10 * elements)));
  tape.back().launches = launches;
}

void takes(Operator& input, Modules modules) {
  input.input_of = modules;
  input.input_bytes = input.kept_bytes;
}

Dtype dtype_of(Precision precision) {
  if (precision == Precision::fp8 || precision == Precision::mxfp8) return Dtype::fp8;
  return precision == Precision::nvfp4 ? Dtype::fp4 : Dtype::bf16;
}

std::int64_t stored_bytes(Dtype dtype, std::int64_t elements) {
  if (dtype == Dtype::fp8) return elements;
  if (dtype == Dtype::fp4) return (9 * elements + 15) / 16;
  return 2 * elements;
}

void quantise(Tape& tape, Dtype dtype, std::int64_t elements) {
  if (dtype == Dtype::fp8) tape.push_back(kernel(memory_bound("quantise", 4 * elements)));
  if (dtype == Dtype::fp4) tape.push_back(kernel(memory_bound("quantise", 5 * elements)));
}

namespace {

/// A GEMM in chunks of tokens, each with a collective of its own, which run one after another: the GEMM of a chunk
/// stands beside the collective of the next (`before`) or of the last (Transformer Engine's userbuffers, pipelined;
/// Chang et al. 2024, Flux, section 2.2).
void gemm_in_chunks(Tape& tape, const Cut& rank, std::string_view name, std::int64_t out, std::int64_t in, Dtype dtype,
                    collective::Kind kind, std::int64_t bytes, bool before) {
  const std::int64_t chunks = rank.tensor_chunks;
  const auto start_chunk = [&](std::int64_t i) {
    start(tape, name, kind, bytes * (i + 1) / chunks - bytes * i / chunks);
  };
  for (std::int64_t i = 0; i < chunks && before; ++i) start_chunk(i);
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (before) join(tape, {std::nullopt, chunks - 1 - i});
    tape.push_back(kernel(gemm(name, rank.tokens / chunks, out, in, dtype)));
    if (!before) start_chunk(i);
  }
  if (!before) join(tape);
}

/// A GEMM over all tokens and the collective that brings its input (`before`) or takes its result. With overlap both
/// go ring step by ring step, so that only one step's share of the GEMM has nothing beside it (Transformer Engine's
/// userbuffers), or chunk by chunk.
void gemm_beside(Tape& tape, const Cut& rank, std::string_view name, std::int64_t out, std::int64_t in, Dtype dtype,
                 collective::Kind kind, std::int64_t bytes, bool before) {
  const auto part = [&](std::int64_t tokens) { tape.push_back(kernel(gemm(name, tokens, out, in, dtype))); };
  if (rank.tensor_chunks > 0) return gemm_in_chunks(tape, rank, name, out, in, dtype, kind, bytes, before);
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

}  // namespace

Operator column_parallel(const Cut& rank, const Linear& of) {
  using collective::Kind;
  Operator made;
  made.name = of.name;
  made.kept_bytes = stored_bytes(of.dtype, rank.region_tokens * of.in);
  made.weight_bytes = stored_bytes(of.dtype, rank.tokens * of.in) + stored_bytes(of.dtype, rank.tokens * of.out);
  const std::int64_t gathered = stored_bytes(of.dtype, rank.tokens * of.in), summed = 2 * rank.tokens * of.in;
  quantise(made.forward, of.dtype, rank.region_tokens * of.in);
  if (rank.sequence_parallel)
    gemm_beside(made.forward, rank, of.name, of.out, of.in, of.dtype, Kind::all_gather, gathered, true);
  else
    made.forward.push_back(kernel(gemm(of.name, rank.tokens, of.out, of.in, of.dtype)));

  quantise(made.backward, of.dtype, rank.tokens * of.out);
  if (rank.sequence_parallel) start(made.backward, of.name, Kind::all_gather, gathered);
  made.backward.push_back(kernel(gemm(of.name, rank.tokens, of.in, of.out, of.dtype)));
  if (rank.tensor > 1) {
    if (rank.sequence_parallel) join(made.backward);
    start(made.backward, of.name, rank.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, summed);
    if (!rank.overlap_input_gradient) join(made.backward);
  }
  add_weight_gradient(made.backward, rank, weight_gradient(of.name, of.out, of.in, rank.tokens, of.dtype));
  if (of.bias) made.backward.push_back(of_weights(memory_bound("bias_gradient", 2 * rank.tokens * of.out)));
  if (rank.tensor > 1 && rank.overlap_input_gradient) join(made.backward);
  return made;
}

Operator row_parallel(const Cut& rank, const Linear& of) {
  using collective::Kind;
  Operator made;
  made.name = of.name;
  made.kept_bytes = stored_bytes(of.dtype, rank.tokens * of.in);
  made.weight_bytes = stored_bytes(of.dtype, rank.tokens * of.in) + stored_bytes(of.dtype, rank.tokens * of.out);
  const std::int64_t summed = 2 * rank.tokens * of.out;
  quantise(made.forward, of.dtype, rank.tokens * of.in);
  if (rank.sequence_parallel) {
    gemm_beside(made.forward, rank, of.name, of.out, of.in, of.dtype, Kind::reduce_scatter, summed, false);
  } else {
    made.forward.push_back(kernel(gemm(of.name, rank.tokens, of.out, of.in, of.dtype)));
    if (rank.tensor > 1) block_on(made.forward, of.name, Kind::all_reduce, summed);
  }

  if (of.bias) made.backward.push_back(of_weights(memory_bound("bias_gradient", 2 * rank.region_tokens * of.out)));
  quantise(made.backward, of.dtype, rank.region_tokens * of.out);
  if (rank.sequence_parallel)
    gemm_beside(made.backward, rank, of.name, of.in, of.out, of.dtype, Kind::all_gather,
                stored_bytes(of.dtype, rank.tokens * of.out), true);
  else
    made.backward.push_back(kernel(gemm(of.name, rank.tokens, of.in, of.out, of.dtype)));
  add_weight_gradient(made.backward, rank, weight_gradient(of.name, of.out, of.in, rank.tokens, of.dtype));
  return made;
}

Operator whole_linear(const Cut& rank, const Linear& of) {
  Operator made;
  made.name = of.name;
  made.kept_bytes = stored_bytes(of.dtype, rank.region_tokens * of.in);
  made.weight_bytes =
      stored_bytes(of.dtype, rank.region_tokens * of.in) + stored_bytes(of.dtype, rank.region_tokens * of.out);
  quantise(made.forward, of.dtype, rank.region_tokens * of.in);
  made.forward.push_back(kernel(gemm(of.name, rank.region_tokens, of.out, of.in, of.dtype)));
  quantise(made.backward, of.dtype, rank.region_tokens * of.out);
  made.backward.push_back(kernel(gemm(of.name, rank.region_tokens, of.in, of.out, of.dtype)));
  add_weight_gradient(made.backward, rank, weight_gradient(of.name, of.out, of.in, rank.region_tokens, of.dtype));
  return made;
}

}  // namespace manyworlds::core::workload
