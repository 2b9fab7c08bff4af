// Two linear layers with an activation function between them, on one rank.
#pragma once

#include <string_view>
#include <vector>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {

/// Names of the two layers, and the width of the input.
struct FeedForwardLayers {
  std::string_view up, down;
  std::int64_t inputs = 0;
};

/// Appends both layers, of `shapes.ffn` columns on this rank, or twice as many with a gate, and the activation
/// function; the input comes from the norm before the part.
void add_feed_forward_network(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes,
                              compute::Dtype dtype, const FeedForwardLayers& layers);

}  // namespace manyworlds::core::workload
