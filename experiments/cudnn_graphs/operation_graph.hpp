// Operations of cuDNN on tensors, as a line of a record has them: the graph of a plan, or one call of the legacy API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/text/json.hpp"

namespace manyworlds::experiments::cudnn_graphs {

/// One that is virtual is never in memory, and one by value is of the host.
struct Tensor {
  std::int64_t id = 0;
  std::vector<std::int64_t> dimensions, strides;
  std::string dtype;
  bool is_virtual = false, is_by_value = false;
};

/// A tensor of an operation: `part` is what it is to it, such as "a", and `tensor` its index in the graph.
struct Part {
  std::string part;
  std::size_t tensor = 0;
};

/// `name` is cuDNN's in small letters: matmul, convolution_forward, reduction_max; of pointwise operations their mode.
struct Operation {
  std::string name;
  std::vector<Part> inputs, outputs;
};

struct OperationGraph {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;  // in the program's order

  /// Returns a tensor of an operation by its part; null if it has none.
  const Tensor* input(const Operation& of, const char* part) const;
  const Tensor* output(const Operation& of, const char* part) const;
  /// Returns the operation that writes a tensor, by its index; -1 if none does.
  std::ptrdiff_t writer_of(std::size_t tensor) const;
};

/// Reads `tensors` and `operations`, lists of a line. Throws InputError, without a file, for a graph without operations
/// or with more than 4,096, for a tensor that is named and not there, for extents that are none, and for tensors of
/// more than 2^40 elements.
OperationGraph operation_graph_of(const import::JsonView& line);

/// Returns the bits of an element of a type, by its name in records; 0 of what is none. Eight of `boolean` are a byte.
int bits_of(const std::string& dtype);

/// Returns the elements of a tensor, and the bytes that they take in memory: axes of stride 0 are there once.
std::int64_t elements_of(const Tensor& tensor);
std::int64_t bytes_of(const Tensor& tensor);

}  // namespace manyworlds::experiments::cudnn_graphs
