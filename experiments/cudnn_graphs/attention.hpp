// Fused attention in a graph of cuDNN's operations, found by its structure and not by names, which programs choose.
#pragma once

#include <optional>
#include <string>

#include "experiments/cudnn_graphs/operation_graph.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::cudnn_graphs {

/// `dtype` is that of the queries in memory. `mask` is why the time of the shape would not be that of the graph: empty
/// if there is no mask or a causal one, which shapes have.
struct FoundAttention {
  programs::AttentionShape shape;
  std::string dtype, mask;
};

/// Returns the attention of a graph: an operation sdpa_forward or sdpa_backward alone; or two matrix products, the
/// second of which takes the first's result through an exponential (forward); or five, of which one is behind an
/// exponential, one is another root, and of the three behind the exponential two are behind that root too (backward:
/// Dao et al. 2022, algorithm 4). Nothing of other graphs. A width is that of queries and keys where values have the
/// same, else the one with which products have as many operations.
std::optional<FoundAttention> find_attention(const OperationGraph& graph);

/// Returns the type in which what an operation takes is in memory: that of a tensor, or if it is virtual, of what it is
/// computed from first.
std::string stored_type(const OperationGraph& graph, std::size_t tensor);

}  // namespace manyworlds::experiments::cudnn_graphs
