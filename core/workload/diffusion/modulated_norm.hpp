// Adaptive layer norm (Peebles and Xie 2023, "Scalable Diffusion Models with Transformers", section 3.2, adaLN-Zero): a
// norm without weights, whose output is scaled and shifted by vectors of the sample, and a gate of such a vector before
// a sum with the residual stream. The vectors come from parts of type modulation.
#pragma once

#include <string_view>
#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Appends y = norm(x) (1 + scale) + shift of the stream's hidden states, whose norm is called `name`, in 16 bits. As a
/// compiler fuses it (norm_fusion), x is read and y written (4 bytes an element); backward one kernel reads x and the
/// gradient and writes another (6), and one reads both for the gradients of scale and shift (4); x is saved. Otherwise
/// PyTorch's product and sum follow the norm (4 each), whose output is saved, too; backward there are the reduction of
/// the gradient (2), its product with 1 + scale (4), that with the norm's output (6) and its reduction (2). The
/// backward pass adds the gradient that bypassed the norm if there is a `residual`. All belongs to `modules`.
void add_modulated_norm(std::vector<Operator>& operators, std::string_view name, const Model& model,
                        const RankShapes& shapes, bool residual, Modules modules = 0);

/// x + gate f: f and x are read and one tensor is written (6 bytes an element); backward f and the gradient are read
/// and one tensor is written (6). Without norm_fusion there are a product (4) and a sum (6), and backward the gradient
/// times the gate (4), times f (6) and its reduction (2). Without bias_dropout_fusion a bias is added before (4). Saved
/// is f.
Operator gated_residual(std::string_view name, const Model& model, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
