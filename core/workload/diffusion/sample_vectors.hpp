// Layers of vectors that each sample has one of, as of its time step, in 16 bits. Every tensor- and context-parallel
// rank computes all of them, but for the vectors of modulation, whose linear layers tensor parallelism shards.
#pragma once

#include <string_view>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// A linear layer with a bias of one vector for each sample. `input_gradient` is false where the input is data.
Operator sample_linear(const RankShapes& shapes, std::string_view name, std::int64_t in, std::int64_t out,
                       bool input_gradient = true);
/// SiLU of a vector of `width` for each sample: read and written; backward two are read and one written.
Operator sample_silu(const RankShapes& shapes, std::int64_t width);

/// Vectors of modulation in a layer: shifts, scales and gates.
struct ModulationVectors {
  std::int64_t count = 0;
  bool table = false;  // a table of the layer is added to what all layers share (Wan), instead of a linear layer
};
/// Returns the weights of modulation.
std::int64_t modulation_parameters(const ModulationVectors& vectors, std::int64_t hidden);
/// Appends SiLU and linear layer of modulation, or the sum with the table: two tensors are read and one written; the
/// gradient of the table is a sum over samples. Saved are the vectors, which kernels behind it read. `ranks` share the
/// linear layer's output features and gather what they computed; the gradient of its input is all-reduced (NeMo,
/// collections/diffusion/models/dit/dit_layer_spec.py @8cfedd7, class AdaLN: ColumnParallelLinear, gather_output).
void add_modulation(std::vector<Operator>& operators, const RankShapes& shapes, const ModulationVectors& vectors,
                    std::int64_t ranks);

}  // namespace manyworlds::core::workload
