// What mixers that go over the sequence with a state have in common: a short convolution and a gated norm.
#pragma once

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Adds the causal convolution over few tokens of `elements`, with its activation function: read and written once.
void convolve(OpList& ops, std::int64_t elements);
/// Its gradient: input and gradient are read, one tensor is written; weights are few.
void convolve_backward(OpList& ops, std::int64_t elements);

/// RMSNorm of y silu(z), with y the mixer's output, which is saved in the order of tokens, and z the gates: y and z are
/// read, one tensor is written; backward three are read and two written.
Operator gated_norm(std::int64_t elements);

}  // namespace manyworlds::core::workload
