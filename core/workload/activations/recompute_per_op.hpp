// Recomputation operator by operator, as PyTorch's selective checkpoints do it (torchtitan, selective_ac_option op).
#pragma once

#include <vector>

#include "core/workload/layer/operators.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// Marks what a layer without experts, of multi-head attention, recomputes before its backward pass: everything but
/// attention itself and the GEMMs whose output is saved. These are every other one in 16 bits, counted over the linear
/// layers that torchtitan keeps apart (query, key, value, output, gate, up, down), and none below 16 bits, whose GEMMs
/// are not on its list. Nobody needs the output of the last again, nor one whose sum over tensor-parallel ranks is
/// saved.
void recompute_per_op(std::vector<Operator>& layer, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
