// Pairs of low rank beside the linear layers of attention and of feed-forward networks: y = W x + s B A x, with A of
// rank x in and B of out x rank (Hu et al. 2021, LoRA, section 4.1), as Megatron-Bridge's ParallelLinearAdapter runs
// them (src/megatron/bridge/peft/utils.py). Their GEMMs are in 16 bits, whatever the layer beside them computes in.
#pragma once

#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// Returns the operators of the pairs beside a linear layer that still has its weight gradients: for each one of A and
/// one of B, which also scales and adds, and with lora_magnitudes one that scales each output to its trained norm. None
/// if the layer is not one of lora_weight or has no pair.
///
/// A layer of queries, keys and values, or of a gate and what it multiplies, has one pair, or one for each of its
/// projections, which read the same input. Where the projections are one GEMM (Stack::projection_fusion), what such
/// pairs give is put side by side before it is added, and the gradient taken apart (Megatron-Bridge,
/// peft/canonical_lora.py, LoRALinearSplitQKV).
///
/// Both matrices are divided over tensor-parallel ranks. Beside a column-parallel layer A is by its rank and B by its
/// outputs: what A gives is gathered. Beside a row-parallel layer A is by its inputs, whose products are summed, and B
/// by its outputs, which are gathered; under sequence parallelism each rank then keeps its own tokens. A's input is
/// whole: under sequence parallelism Transformer Engine hands on what it has gathered for the layer, and adds the
/// gradient to the layer's before it scatters these, unless it overlaps that gather with the layer's GEMM: then A's
/// input is gathered, and its gradient scattered, once more.
std::vector<Operator> pairs_beside(const Operator& linear, const Model& model, const RankShapes& shapes);

/// With lora_magnitudes the outputs of layer and pair are multiplied by m / |W + s B A|, of which the norm is computed
/// in every forward pass, from the weight and the product of the pair, and gets no gradient (Liu et al. 2024, DoRA,
/// section 4.3; Megatron-Bridge @067f987, peft/dora_layers.py). Under tensor parallelism the factor that a rank has a
/// share of is gathered for it; beside a row-parallel layer the norm is that of the rank's inputs, as there. Returns
/// the most bytes that such a norm needs while it is computed: the product and the sum in 16 bits.
std::int64_t magnitude_working_bytes(const std::vector<Operator>& operators);

/// Whether what pairs save is the layer's input, and no copy of which some elements are dropped.
bool replaces_saved_input(const std::vector<Operator>& pairs, const Model& model);

}  // namespace manyworlds::core::workload
