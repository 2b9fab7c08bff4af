// Components of operators: lists of kernels and collectives, element-wise operators, linear layers sharded over ranks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

WorkItem kernel(const compute::Kernel& shape, std::int64_t launches = 1);
/// Returns a kernel that computes weight gradients.
WorkItem weight_gradient_kernel(const compute::Kernel& shape, std::int64_t launches = 1);
void start(OpList& ops, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role = Role::tensor,
           collective::Split split = {});
void join(OpList& ops, Join join = {});
void append(OpList& to, const OpList& from);
/// Starts a collective that the next kernel waits for.
void block_on(OpList& ops, std::string_view name, collective::Kind kind, std::int64_t bytes, Role role = Role::tensor);

/// Memory-bound operator over `elements`, with bytes per element in each direction (0: no kernel).
Operator elementwise(std::string_view name, std::int64_t elements, std::int64_t forward, std::int64_t backward,
                     std::int64_t saved_bytes);
/// Returns the same as chains of kernels, each with its bytes per element: all but the last go through memory instead
/// of caches, and each one is launched.
Operator chain(std::string_view name, std::int64_t elements, std::initializer_list<std::int64_t> forward,
               std::initializer_list<std::int64_t> backward, std::int64_t saved_bytes);
/// Norm of `rows` of `width` elements. Forward: read x, write y. Backward: read x and dy, write dx. Bytes per element 4
/// and 6. Unfused, an RMSNorm is PyTorch's kernels in fp32, one by one: 36 bytes per element in 8 kernels forward, 92
/// in 16 backward, and x in fp32 and its normalised copy are saved, 6 bytes instead of 2.
Operator norm(std::string_view name, const Model& model, const RankShapes& shapes, std::int64_t rows,
              std::int64_t width);
/// The norm that opens a residual branch: its backward pass also adds the gradient that bypassed the branch (r, r, w).
Operator branch_norm(std::string_view name, const Model& model, const RankShapes& shapes);
/// Bias, dropout and residual in one kernel. Forward: read x and residual, write y (and mask). Backward: dropout only.
/// Unfused: one kernel adds x and bias (4 bytes per element), one drops out (5), one adds the residual (6).
Operator residual(std::string_view name, const RankShapes& shapes, const Model& model);
/// GELU: read x, write y; backward read x and dy, write dx. SwiGLU has two inputs, gate and up. `elements` is the size
/// of y. Unfused, the bias is added before (4 bytes per element of x), and SwiGLU is a SiLU (4), whose output is saved,
/// and a product (6); backward there are two products (6 each), the SiLU's gradient (6), and a concatenation of both
/// halves (8).
Operator activation(const Model& model, const RankShapes& shapes, std::int64_t elements);
/// Rotary positions of queries and keys, read and written. Unfused, x cos + rotate(x) sin as in Megatron-LM: half of x
/// is negated, halves are concatenated, two products and a sum follow, 20 bytes per element, and as many backward.
Operator rotary(const RankShapes& shapes, std::int64_t elements);
/// Adds a GEMM that computes weight gradients and adds them to those of earlier micro-batches. Unfused, it writes them
/// in 16 bits, and another kernel reads them and adds them to the fp32 gradients (10 bytes per element).
void add_weight_gradient(OpList& ops, const RankShapes& shapes, compute::Kernel gradient, std::int64_t launches = 1);

/// Marks everything that `input` saves as output of these modules.
void mark_input_from(Operator& input, Modules modules);

compute::Dtype dtype_of(Precision precision);
/// Returns the bytes of a GEMM's input as saved for the backward pass and as gathered by sequence parallelism:
/// quantised, with FP4's scales of 16 elements each; the scales of FP8 are too few to count (Transformer Engine,
/// _all_gather_fp8 and similar functions in pytorch/distributed.py).
std::int64_t stored_bytes(compute::Dtype dtype, std::int64_t elements);
/// Adds the kernel that quantises a GEMM's input of `elements`: it reads bf16 and writes twice, for both operand
/// layouts. FP4 reads the input once more, for the scale of the whole tensor.
void quantise(OpList& ops, compute::Dtype dtype, std::int64_t elements, std::int64_t launches = 1);

/// A linear layer on one rank, with `in` input and `out` output features.
struct Linear {
  std::string_view name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  compute::Dtype dtype = compute::Dtype::bf16;
  std::vector<std::int64_t> parts = {};  // output features of each GEMM, if several share the input
};
/// Parts are GEMMs of their own; where they are not fused, gradients of their common input are added (6 bytes an
/// element). Where tensors do not begin with the sequence, what is gathered is copied behind its collective, and what
/// is scattered is copied before (PyTorch, _functional_collectives.py, all_gather_tensor() and
/// reduce_scatter_tensor()).
///
/// Output features are sharded over ranks. The input is whole on every rank; under sequence parallelism it is gathered
/// from its shards, only the own shard is saved, and the backward pass gathers again behind the input gradient's GEMM
/// (Korthikanti et al., section 4.2.2).
Operator column_parallel(const RankShapes& shapes, const Linear& linear);
/// Input features are sharded over ranks; partial outputs are all-reduced, or reduce-scattered under sequence
/// parallelism.
Operator row_parallel(const RankShapes& shapes, const Linear& linear);
/// Not sharded: every rank has all features, for the tokens outside tensor-parallel regions.
Operator replicated_linear(const RankShapes& shapes, const Linear& linear);

}  // namespace manyworlds::core::workload
