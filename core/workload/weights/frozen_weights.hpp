// Operators whose weights are not trained: their backward passes compute gradients of inputs alone.
#pragma once

#include <cstddef>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// Takes the weight gradients of a part out of the backward passes of its operators, which are those from `first` on,
/// and what these alone need: the saved input of a linear layer, its second gather under sequence parallelism, and its
/// second layout in 8 or 4 bits. PyTorch's linear layers save their input if the weight requires a gradient, and so do
/// Transformer Engine's (module/linear.py, backward_needs_input) and Megatron-LM's (tensor_parallel/layers.py,
/// LinearWithFrozenWeight). Norms, activation functions and attention save what gradients of their inputs need, among
/// it fused attention's output, which the linear layer behind it has saved otherwise. Adds the pairs of low rank that
/// the part's model asks for, if `has_pairs` (low_rank_pairs.hpp).
void freeze_weights(std::vector<Operator>& operators, std::size_t first, const Model& model, const RankShapes& shapes,
                    bool has_pairs);

/// Leaves the forward passes of operators alone: no gradient passes through them, so that they save nothing.
void keep_forward_only(std::vector<Operator>& operators);

/// Leaves the forward passes alone of the operators from `first` on, in a step without a backward pass: no kernel
/// writes the layout of 8 or 4 bits that weight gradients read. What they would save tells their inputs still, which
/// are in memory while they run.
void drop_backward_passes(std::vector<Operator>& operators, std::size_t first);

}  // namespace manyworlds::core::workload
