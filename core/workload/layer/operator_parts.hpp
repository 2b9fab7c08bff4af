// What operators are made of: tapes of kernels and collectives, element-wise operators, linear layers cut over ranks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/workload/layer/operators.hpp"

namespace manyworlds::core::workload {

Work kernel(compute::Kernel kernel);
/// One that makes gradients of weights.
Work of_weights(compute::Kernel kernel);
void start(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role = Role::tensor);
void join(Tape& tape, Awaited awaited = {});
void append(Tape& to, const Tape& from);
/// A collective that the next kernel needs at once.
void block_on(Tape& tape, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role = Role::tensor);

/// Memory-bound operator over `elements`, with bytes per element in each direction (0: no kernel).
Operator elementwise(std::string_view name, std::int64_t elements, std::int64_t forward, std::int64_t backward,
                     std::int64_t kept_bytes);
/// The same as chains of kernels through memory, each of so many bytes per element: none but the last leaves anything
/// in caches, and each is launched.
Operator chain(std::string_view name, std::int64_t elements, std::initializer_list<std::int64_t> forward,
               std::initializer_list<std::int64_t> backward, std::int64_t kept_bytes);
/// Forward: read x, write y. Backward: read x and dy, write dx. Bytes per element 4 and 6.
Operator norm(std::string_view name, std::int64_t elements);
/// The norm that opens a residual branch: its backward also adds the gradient that came past the branch (r, r, w).
Operator branch_norm(std::string_view name, const Cut& rank);
/// Bias, dropout and residual in one kernel. Forward: read x and residual, write y (and mask). Backward: dropout only.
/// Not fused: x and bias are added (4 bytes per element), dropped out (5), and added to the residual (6).
Operator residual(std::string_view name, const Cut& rank, const Model& model);
/// GELU: read x, write y; backward read x and dy, write dx. SwiGLU has two inputs, gate and up. `elements` of y. Not
/// fused, the bias is added before (4 bytes per element of x), and SwiGLU is a SiLU (4), kept, and a product (6);
/// backward two products (6 each), the SiLU's gradient (6), and both halves put together (8).
Operator activation(const Model& model, const Cut& rank, std::int64_t elements);
/// Positions of queries and keys, read and written; not fused, x cos + rotate(x) sin as Megatron-LM writes it: half of
/// x negated, halves put together, two products and a sum, 20 bytes per element, and as many backward.
Operator rotary(const Cut& rank, std::int64_t elements);
/// A GEMM that makes gradients of weights, and adds them to those of earlier micro-batches; not fused, it writes them
/// in 16 bits, and another kernel reads them and adds them to fp32 ones (10 bytes per element).
void add_weight_gradient(Tape& tape, const Cut& rank, compute::Kernel gradient, std::int64_t launches = 1);

/// All that it keeps is what came out of these modules.
void takes(Operator& input, Modules modules);

compute::Dtype dtype_of(Precision precision);
/// Bytes of a GEMM's input as it is kept for the backward pass and as sequence parallelism gathers it: quantised, with
/// FP4's scales of 16 elements each; scales of FP8 are too few to count (Transformer Engine, _all_gather_fp8 and its
/// like in pytorch/distributed.py).
std::int64_t stored_bytes(compute::Dtype dtype, std::int64_t elements);
/// What makes a GEMM's input of `elements`: it is read in bf16 and written twice, as both operand layouts need it.
/// FP4 reads it once more, for the scale of the whole tensor.
void quantise(Tape& tape, compute::Dtype dtype, std::int64_t elements);

/// A linear layer on one rank, `in` and `out` features wide.
struct Linear {
  std::string_view name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  compute::Dtype dtype = compute::Dtype::bf16;
};
/// Output features cut over ranks. The input is whole on every rank; under sequence parallelism it is gathered from
/// its pieces, only the piece is kept, and the backward pass gathers again behind the input gradient's GEMM
/// (Korthikanti et al., section 4.2.2).
Operator column_parallel(const Cut& rank, const Linear& of);
/// Input features cut over ranks; the partial outputs are added up, and scattered under sequence parallelism.
Operator row_parallel(const Cut& rank, const Linear& of);
/// Not cut: every rank has all features, for the tokens outside tensor-parallel regions.
Operator whole_linear(const Cut& rank, const Linear& of);

}  // namespace manyworlds::core::workload
