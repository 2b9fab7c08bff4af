// Operations on tensors as they are recorded: of a graph of the backend API, or of one call of the older one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/capture/cudnn/descriptor.hpp"
#include "experiments/capture/record.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// `id` is unique in a graph. A virtual tensor is never in memory, and one by value is the host's. The extents of a
/// ragged one are the largest ones, as its offsets are on the device. Where elements lie in vectors, dimensions count
/// elements, and strides are those of vectors.
struct GraphTensor {
  std::int64_t id = 0;
  std::vector<std::int64_t> dimensions, strides;
  int type = 0;  // cudnnDataType_t
  bool is_virtual = false, is_by_value = false;
  bool is_ragged = false, has_vectors = false;
};

struct GraphOperation {
  std::string name;
  std::vector<std::pair<std::string, std::int64_t>> inputs, outputs;     // name of the tensor's part, and its id
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> lists;  // of convolutions: strides and so on
};

struct OperationGraph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphOperation> operations;
  /// Returns the tensor of an id; null if there is none.
  const GraphTensor* tensor(std::int64_t id) const;
};

/// Returns the operations of a CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR that is final, in its order.
OperationGraph graph_of(const Descriptor& graph);

/// Adds `tensors` and `operations` to the line.
void describe(Line& line, const OperationGraph& graph);

/// Adds where tensors in memory are, `data`, each with its id, and says if one is beyond its allocation. Pointers are
/// by tensor; those of virtual tensors are not read. The mutex is held.
void describe_data(Line& line, const OperationGraph& graph, const std::vector<const void*>& pointers);

}  // namespace manyworlds::experiments::capture::cudnn
