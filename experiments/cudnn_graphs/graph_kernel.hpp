// What a graph of cuDNN's operations costs, as one kernel.
#pragma once

#include <string>

#include "experiments/cudnn_graphs/operation_graph.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::cudnn_graphs {

/// `name` is "cudnn" and the operations, or what they are together. The shape of `work` is not known if the graph is
/// not understood, or its type has no rate. `dtype` is that of its products as recorded; empty if it has none.
struct GraphKernel {
  std::string name, dtype;
  programs::KernelWork work;
};

/// Returns the kernel of a graph: fused attention; else the one matrix product or convolution in it, as a product with
/// the bytes of all tensors in memory; else these bytes, if nothing in it is a product. A convolution of N images and K
/// filters is the product that has as many operations, 2 N K OH OW (C / groups) R S, in each of its directions. Throws
/// InputError, without a file, for more than 1e18 operations or 2^50 bytes.
GraphKernel graph_kernel(const OperationGraph& graph);

}  // namespace manyworlds::experiments::cudnn_graphs
