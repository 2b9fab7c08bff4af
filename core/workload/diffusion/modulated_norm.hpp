// Adaptive layer norm (Peebles and Xie 2023, "Scalable Diffusion Models with Transformers", section 3.2, adaLN-Zero): a
// norm without weights, whose output is scaled and shifted by vectors of the sample, and a gate of such a vector before
// a sum with the residual stream. The vectors come from parts of type modulation.
#pragma once

#include <string_view>
#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Appends the norm called `name`, of the stream's hidden states, and x (1 + scale) + shift behind it. The backward
/// pass of the norm adds the gradient that bypassed it if there is a `residual`. In 16 bits, scale and shift read and
/// write each element (4 bytes); backward the norm's output and the gradient are read, for the gradients of scale and
/// shift, and one tensor is written (6). Without bias_dropout_fusion these are PyTorch's kernels: a product and a sum
/// (4 each); backward the sum's reduction (2), the gradient times 1 + scale (4), times the norm's output (6) and its
/// reduction (2).
void add_modulated_norm(std::vector<Operator>& operators, std::string_view name, const Model& model,
                        const RankShapes& shapes, bool residual);

/// x + gate f: f and x are read and one tensor is written (6 bytes an element); backward f and the gradient are read
/// and one tensor is written (6). Without bias_dropout_fusion the bias is added before (4), a product (4) and a sum (6)
/// follow; backward there are the gradient times the gate (4), times f (6) and its reduction (2). Saved is f.
Operator gated_residual(std::string_view name, const Model& model, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
