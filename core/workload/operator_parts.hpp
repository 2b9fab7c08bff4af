// What operators are made of: tapes of kernels and collectives, element-wise operators, linear layers cut over ranks.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/workload/operators.hpp"

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
/// Forward: read x, write y. Backward: read x and dy, write dx. Bytes per element 4 and 6.
Operator norm(std::string_view name, std::int64_t elements);
/// The norm that opens a residual branch: its backward also adds the gradient that came past the branch (r, r, w).
Operator branch_norm(std::string_view name, const Cut& rank);
/// Bias, dropout and residual in one kernel. Forward: read x and residual, write y (and mask). Backward: dropout only.
Operator residual(std::string_view name, const Cut& rank, bool dropout);
/// GELU: read x, write y; backward read x and dy, write dx. SwiGLU has two inputs, gate and up. `elements` of y.
Operator activation(const Model& model, std::int64_t elements);

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
