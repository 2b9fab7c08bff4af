// Kernels and collectives of element-wise operators and linear layers.
#include "core/workload/operators/operator_parts.hpp"

#include <array>
#include <utility>

namespace manyworlds::core::workload {

using compute::Dtype;
using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

WorkItem kernel(const compute::Kernel& shape, std::int64_t launches) {
  return {KernelWork{shape, launches}};
}

WorkItem weight_gradient_kernel(const compute::Kernel& shape, std::int64_t launches) {
  return {KernelWork{shape, launches, true}};
}

void start(OpList& ops, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role,
           collective::Split split) {
  ops.push_back({CollectiveStart{name, kind, bytes, role, std::move(split)}});
}

void join(OpList& ops, Join join) {
  ops.push_back({join});
}

void append(OpList& to, const OpList& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void block_on(OpList& ops, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role) {
  start(ops, name, kind, bytes, role);
  join(ops);
}

Operator elementwise(std::string_view name, std::int64_t elements, std::int64_t forward, std::int64_t backward,
                     std::int64_t saved_bytes) {
  Operator result;
  result.name = name;
  result.saved_bytes = saved_bytes;
  if (forward > 0) result.forward.push_back(kernel(memory_bound(name, forward * elements)));
  if (backward > 0) result.backward.push_back(kernel(memory_bound(name, backward * elements)));
  return result;
}

Operator chain(std::string_view name, std::int64_t elements, std::initializer_list<std::int64_t> forward,
               std::initializer_list<std::int64_t> backward, std::int64_t saved_bytes) {
  Operator result;
  result.name = name;
  result.saved_bytes = saved_bytes;
  for (const std::int64_t bytes : forward) result.forward.push_back(kernel(memory_bound(name, bytes * elements)));
  for (const std::int64_t bytes : backward) result.backward.push_back(kernel(memory_bound(name, bytes * elements)));
  return result;
}

namespace {

/// A kernel that reads and writes so many bytes for each element and for each row of a norm.
struct RowKernel {
  std::int64_t element_bytes, row_bytes;
};

/// RMSNorm as torchtitan's own module writes it (@9dec370, torchtitan/models/norms.py): x.float() * rsqrt(x.float()
/// .pow(2).mean() + eps), back in 16 bits, times the weight.
constexpr std::array kNormForward{
    RowKernel{6, 0},  // to fp32
    RowKernel{8, 0},  // squares
    RowKernel{4, 4},  // their mean
    RowKernel{0, 8},  // plus epsilon
    RowKernel{0, 8},  // reciprocal root
    RowKernel{8, 4},  // product
    RowKernel{6, 0},  // to 16 bits
    RowKernel{4, 0},  // times the weight
};

/// Its gradient, by the formulas of PyTorch's autograd (tools/autograd/derivatives.yaml, FunctionsManual.cpp).
constexpr std::array kNormBackward{
    RowKernel{4, 0},   // times the weight
    RowKernel{6, 0},   // of the weight: a product,
    RowKernel{2, 0},   // and its sum over rows
    RowKernel{6, 0},   // to fp32
    RowKernel{8, 4},   // of x through the product
    RowKernel{12, 0},  // of the reciprocal root: a product,
    RowKernel{4, 4},   // and its sum over the row
    RowKernel{0, 8},   // through the root: its third power,
    RowKernel{0, 8},   // minus half of the gradient,
    RowKernel{0, 12},  // and their product
    RowKernel{4, 4},   // through the mean: divided, for every element
    RowKernel{8, 0},   // through the square: the first power, a copy,
    RowKernel{8, 0},   // twice of it,
    RowKernel{12, 0},  // and the product
    RowKernel{12, 0},  // both gradients of x are added
    RowKernel{6, 0},   // to 16 bits
};

template <std::size_t n>
void add_row_kernels(OpList& ops, std::string_view name, const std::array<RowKernel, n>& kernels, std::int64_t rows,
                     std::int64_t width) {
  for (const RowKernel& each : kernels)
    ops.push_back(kernel(memory_bound(name, rows * (each.element_bytes * width + each.row_bytes))));
}

}  // namespace

Operator norm(std::string_view name, const Model& model, const RankShapes& shapes, std::int64_t rows,
              std::int64_t width) {
  if (shapes.stack.norm_fusion || model.norm == Norm::layer_norm)
    return elementwise(name, rows * width, 4, 6, 2 * rows * width);
  Operator result;
  result.name = name;
  result.saved_bytes = rows * (6 * width + 4);
  add_row_kernels(result.forward, name, kNormForward, rows, width);
  add_row_kernels(result.backward, name, kNormBackward, rows, width);
  return result;
}

Operator branch_norm(std::string_view name, const Model& model, const RankShapes& shapes) {
  Operator result = norm(name, model, shapes, shapes.sp_region_tokens, shapes.hidden);
  result.backward.push_back(kernel(memory_bound("residual_gradient", 6 * shapes.sp_region_tokens * shapes.hidden)));
  return result;
}

Operator residual(std::string_view name, const RankShapes& shapes, const Model& model) {
  const std::int64_t elements = shapes.sp_region_tokens * shapes.hidden;
  const bool dropout = model.dropout;
  if (shapes.stack.bias_dropout_fusion)
    return elementwise(name, elements, dropout ? 7 : 6, dropout ? 5 : 0, dropout ? elements : 0);
  Operator result = dropout ? chain(name, elements, {5, 6}, {5}, elements) : chain(name, elements, {6}, {}, 0);
  if (model.biases) result.forward.insert(result.forward.begin(), kernel(memory_bound(name, 4 * elements)));
  return result;
}

Operator activation(const Model& model, const RankShapes& shapes, std::int64_t elements) {
  constexpr std::array<std::string_view, 5> kNames{"gelu", "swiglu", "geglu", "relu", "squared_relu"};
  const bool gated = model.is_gated();
  const std::string_view name = kNames[static_cast<std::size_t>(model.activation)];
  if (shapes.stack.bias_activation_fusion)
    return gated ? elementwise(name, elements, 6, 10, 4 * elements) : elementwise(name, elements, 4, 6, 2 * elements);
  Operator result =
      gated ? chain(name, elements, {4, 6}, {6, 6, 6, 8}, 6 * elements) : chain(name, elements, {4}, {6}, 2 * elements);
  if (model.biases)
    result.forward.insert(result.forward.begin(), kernel(memory_bound(name, (gated ? 8 : 4) * elements)));
  return result;
}

Operator rotary(const RankShapes& shapes, std::int64_t elements) {
  return shapes.stack.rope_fusion ? elementwise("rotary", elements, 4, 4, 0)
                                  : chain("rotary", elements, {2, 4, 4, 4, 6}, {4, 4, 2, 4, 6}, 0);
}

void add_weight_gradient(OpList& ops, const RankShapes& shapes, compute::Kernel gradient, std::int64_t launches) {
  const std::int64_t elements = gradient.m * gradient.n * gradient.batch;
  const bool fused = shapes.stack.gradient_accumulation_fusion;
  if (!fused) gradient.bytes -= 6 * elements, gradient.accumulates = false;
  ops.push_back(weight_gradient_kernel(gradient, launches));
  if (!fused) ops.push_back(weight_gradient_kernel(memory_bound("accumulate_gradient", 10 * elements), launches));
}

void mark_input_from(Operator& input, Modules modules) {
  input.input_from = modules;
  input.module_output_bytes = input.saved_bytes;
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

void quantise(OpList& ops, Dtype dtype, std::int64_t elements, std::int64_t launches) {
  if (dtype == Dtype::fp8) ops.push_back(kernel(memory_bound("quantise", 4 * elements), launches));
  if (dtype == Dtype::fp4) ops.push_back(kernel(memory_bound("quantise", 5 * elements), launches));
}

namespace {

/// Output features of the GEMMs of a linear layer.
std::vector<std::int64_t> gemm_columns(const Linear& linear) {
  return linear.parts.empty() ? std::vector{linear.out} : linear.parts;
}

/// Adds the kernel that copies what a collective over the sequence gathers or scatters, if it has to be.
void copy_sequence(OpList& ops, const RankShapes& shapes, std::int64_t bytes) {
  if (bytes > 0 && shapes.sequence_parallel && !shapes.stack.sequence_first)
    ops.push_back(kernel(memory_bound("copy_sequence", 2 * bytes)));
}

/// A GEMM in chunks of tokens, each with a collective of its own, one after another: the GEMM of a chunk overlaps with
/// the collective of the next chunk (`before`) or of the previous one (Transformer Engine's userbuffers, pipelined;
/// Chang et al. 2024, Flux, section 2.2).
void chunked_gemm(OpList& ops, const RankShapes& shapes, std::string_view name,
                  const std::vector<std::int64_t>& columns, std::int64_t in, Dtype dtype, collective::Kind kind,
                  std::int64_t bytes, bool before) {
  const std::int64_t chunks = shapes.tensor_chunks;
  const auto start_chunk = [&](std::int64_t i) {
    start(ops, name, kind, bytes * (i + 1) / chunks - bytes * i / chunks);
  };
  for (std::int64_t i = 0; i < chunks && before; ++i) start_chunk(i);
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (before) join(ops, {std::nullopt, chunks - 1 - i});
    for (const std::int64_t out : columns) ops.push_back(kernel(gemm(name, shapes.tokens / chunks, out, in, dtype)));
    if (!before) start_chunk(i);
  }
  if (!before) join(ops);
}

/// GEMMs over all tokens, with these columns, and the collective that brings their input (`before`) or takes their
/// output. With overlap both proceed in ring steps, so that only one step's share of the GEMMs is exposed (Transformer
/// Engine's userbuffers), or in chunks. PyTorch's async TP then gathers in place, and adds up the parts of a sum that
/// it has received (_symmetric_memory, fused_matmul_reduce_scatter()).
void overlapped_gemm(OpList& ops, const RankShapes& shapes, std::string_view name,
                     const std::vector<std::int64_t>& columns, std::int64_t in, Dtype dtype, collective::Kind kind,
                     std::int64_t bytes, bool before) {
  const auto add_gemm = [&](std::int64_t tokens) {
    for (const std::int64_t out : columns) ops.push_back(kernel(gemm(name, tokens, out, in, dtype)));
  };
  const std::int64_t step = shapes.tokens / shapes.tensor_parallel;
  if (!shapes.overlap_tensor) {
    if (before) block_on(ops, name, kind, bytes);
    copy_sequence(ops, shapes, before ? bytes : 0);
    add_gemm(shapes.tokens);
    copy_sequence(ops, shapes, before ? 0 : bytes);
    if (!before) block_on(ops, name, kind, bytes);
    return;
  }
  if (shapes.tensor_chunks > 0) {
    chunked_gemm(ops, shapes, name, columns, in, dtype, kind, bytes, before);
  } else {
    if (!before) add_gemm(step);
    start(ops, name, kind, bytes);
    add_gemm(shapes.tokens - step);
    join(ops);
    if (before) add_gemm(step);
  }
  if (!before && !shapes.stack.sequence_first)
    ops.push_back(kernel(memory_bound("sum_parts", bytes + bytes / shapes.tensor_parallel)));
}

/// Gradients of a linear layer's input: a GEMM for each of its parts, and the sums of what these give.
void add_input_gradient(OpList& ops, std::int64_t tokens, const Linear& linear) {
  bool first = true;
  for (const std::int64_t out : gemm_columns(linear)) {
    ops.push_back(kernel(gemm(linear.name, tokens, linear.in, out, linear.dtype)));
    if (!first) ops.push_back(kernel(memory_bound("sum_input_gradients", 6 * tokens * linear.in)));
    first = false;
  }
}

}  // namespace

Operator column_parallel(const RankShapes& shapes, const Linear& linear) {
  using collective::Kind;
  const std::vector<std::int64_t> columns = gemm_columns(linear);
  Operator result;
  result.name = linear.name;
  result.saved_bytes = stored_bytes(linear.dtype, shapes.sp_region_tokens * linear.in);
  result.weight_gradient_input_bytes =
      stored_bytes(linear.dtype, shapes.tokens * linear.in) + stored_bytes(linear.dtype, shapes.tokens * linear.out);
  const std::int64_t gathered = stored_bytes(linear.dtype, shapes.tokens * linear.in),
                     summed = 2 * shapes.tokens * linear.in;
  quantise(result.forward, linear.dtype, shapes.sp_region_tokens * linear.in);
  if (shapes.sequence_parallel)
    overlapped_gemm(result.forward, shapes, linear.name, columns, linear.in, linear.dtype, Kind::all_gather, gathered,
                    true);
  else
    for (const std::int64_t out : columns)
      result.forward.push_back(kernel(gemm(linear.name, shapes.tokens, out, linear.in, linear.dtype)));

  quantise(result.backward, linear.dtype, shapes.tokens * linear.out, static_cast<std::int64_t>(columns.size()));
  if (shapes.sequence_parallel) start(result.backward, linear.name, Kind::all_gather, gathered);
  add_input_gradient(result.backward, shapes.tokens, linear);
  if (shapes.tensor_parallel > 1) {
    if (shapes.sequence_parallel) join(result.backward);
    copy_sequence(result.backward, shapes, summed);
    start(result.backward, linear.name, shapes.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce, summed);
    if (!shapes.overlap_input_gradient) join(result.backward);
  }
  copy_sequence(result.backward, shapes, gathered);
  for (const std::int64_t out : columns)
    add_weight_gradient(result.backward, shapes,
                        weight_gradient(linear.name, out, linear.in, shapes.tokens, linear.dtype));
  if (linear.bias)
    result.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * shapes.tokens * linear.out)));
  if (shapes.tensor_parallel > 1 && shapes.overlap_input_gradient) join(result.backward);
  return result;
}

Operator row_parallel(const RankShapes& shapes, const Linear& linear) {
  using collective::Kind;
  Operator result;
  result.name = linear.name;
  result.saved_bytes = stored_bytes(linear.dtype, shapes.tokens * linear.in);
  result.weight_gradient_input_bytes =
      stored_bytes(linear.dtype, shapes.tokens * linear.in) + stored_bytes(linear.dtype, shapes.tokens * linear.out);
  const std::int64_t summed = 2 * shapes.tokens * linear.out;
  quantise(result.forward, linear.dtype, shapes.tokens * linear.in);
  if (shapes.sequence_parallel) {
    overlapped_gemm(result.forward, shapes, linear.name, {linear.out}, linear.in, linear.dtype, Kind::reduce_scatter,
                    summed, false);
  } else {
    result.forward.push_back(kernel(gemm(linear.name, shapes.tokens, linear.out, linear.in, linear.dtype)));
    if (shapes.tensor_parallel > 1) block_on(result.forward, linear.name, Kind::all_reduce, summed);
  }

  if (linear.bias)
    result.backward.push_back(
        weight_gradient_kernel(memory_bound("bias_gradient", 2 * shapes.sp_region_tokens * linear.out)));
  quantise(result.backward, linear.dtype, shapes.sp_region_tokens * linear.out);
  if (shapes.sequence_parallel)
    overlapped_gemm(result.backward, shapes, linear.name, {linear.in}, linear.out, linear.dtype, Kind::all_gather,
                    stored_bytes(linear.dtype, shapes.tokens * linear.out), true);
  else
    result.backward.push_back(kernel(gemm(linear.name, shapes.tokens, linear.in, linear.out, linear.dtype)));
  add_weight_gradient(result.backward, shapes,
                      weight_gradient(linear.name, linear.out, linear.in, shapes.tokens, linear.dtype));
  return result;
}

Operator replicated_linear(const RankShapes& shapes, const Linear& linear) {
  Operator result;
  result.name = linear.name;
  result.saved_bytes = stored_bytes(linear.dtype, shapes.sp_region_tokens * linear.in);
  result.weight_gradient_input_bytes = stored_bytes(linear.dtype, shapes.sp_region_tokens * linear.in) +
                                       stored_bytes(linear.dtype, shapes.sp_region_tokens * linear.out);
  quantise(result.forward, linear.dtype, shapes.sp_region_tokens * linear.in);
  result.forward.push_back(kernel(gemm(linear.name, shapes.sp_region_tokens, linear.out, linear.in, linear.dtype)));
  quantise(result.backward, linear.dtype, shapes.sp_region_tokens * linear.out);
  result.backward.push_back(kernel(gemm(linear.name, shapes.sp_region_tokens, linear.in, linear.out, linear.dtype)));
  add_weight_gradient(result.backward, shapes,
                      weight_gradient(linear.name, linear.out, linear.in, shapes.sp_region_tokens, linear.dtype));
  return result;
}

}  // namespace manyworlds::core::workload
