// The input of a layer that is recomputed as a whole, where it is not one vector of the layer's own network for each
// token.
#pragma once

#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Lets a recomputed layer, to which its policy has been applied, keep the input that its first part reads instead of
/// hidden states of its own network, and recompute everything else. Changes nothing where both have one shape.
void keep_input(std::vector<Operator>& layer, const Model& model, const Strategy& strategy, LayerKind kind);

}  // namespace manyworlds::core::workload
