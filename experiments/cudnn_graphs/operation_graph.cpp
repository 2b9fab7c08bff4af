#include "experiments/cudnn_graphs/operation_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::experiments::cudnn_graphs {
namespace {

using core::InputError;
using import::JsonView;

constexpr std::size_t kLargestGraph = 4096, kLargestRank = 8;
constexpr std::int64_t kLargestTensor = std::int64_t{1} << 40;

std::vector<std::int64_t> extents_of(const JsonView& list, std::int64_t least) {
  std::vector<std::int64_t> extents;
  list.for_each([&](const JsonView& one) { extents.push_back(one.whole(least, kLargestTensor)); });
  return extents;
}

Tensor tensor_of(const JsonView& value) {
  Tensor tensor;
  tensor.id = value.at("id").whole(std::int64_t{-1} << 53);
  tensor.dimensions = extents_of(value.at("dims"), 1);
  tensor.strides = extents_of(value.at("strides"), 0);
  tensor.dtype = value.at("dtype").text();
  if (const auto is_virtual = value.find("virtual")) tensor.is_virtual = is_virtual->boolean();
  if (const auto is_by_value = value.find("by_value")) tensor.is_by_value = is_by_value->boolean();
  const std::size_t rank = tensor.dimensions.size();
  if (rank == 0 || rank > kLargestRank || tensor.strides.size() != rank)
    throw InputError(fmt::format("'dims' and 'strides' of tensor {} must be 1 to 8 numbers each", tensor.id));
  double elements = 1;
  for (const std::int64_t extent : tensor.dimensions) elements *= static_cast<double>(extent);
  if (elements > static_cast<double>(kLargestTensor))
    throw InputError(fmt::format("tensor {} has more than 2^40 elements", tensor.id));
  return tensor;
}

/// Pairs of a part and the id of a tensor.
std::vector<Part> parts_of(const JsonView& list, const OperationGraph& graph) {
  std::vector<Part> parts;
  list.for_each([&](const JsonView& pair) {
    Part part;
    std::int64_t id = 0;
    std::size_t place = 0;
    pair.for_each([&](const JsonView& one) {
      if (place == 0) part.part = one.text();
      if (place == 1) id = one.whole(std::int64_t{-1} << 53);
      ++place;
    });
    const auto found =
        std::find_if(graph.tensors.begin(), graph.tensors.end(), [&](const Tensor& tensor) { return tensor.id == id; });
    if (place != 2 || found == graph.tensors.end())
      throw InputError("'inputs' and 'outputs' must be pairs of a part and the id of a tensor");
    part.tensor = static_cast<std::size_t>(found - graph.tensors.begin());
    parts.push_back(std::move(part));
  });
  return parts;
}

const Tensor* tensor_at(const OperationGraph& graph, const std::vector<Part>& parts, const char* part) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& one) { return one.part == part; });
  return found == parts.end() ? nullptr : &graph.tensors[found->tensor];
}

}  // namespace

const Tensor* OperationGraph::input(const Operation& of, const char* part) const {
  return tensor_at(*this, of.inputs, part);
}
const Tensor* OperationGraph::output(const Operation& of, const char* part) const {
  return tensor_at(*this, of.outputs, part);
}

std::ptrdiff_t OperationGraph::writer_of(std::size_t tensor) const {
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const Part& one : operations[i].outputs)
      if (one.tensor == tensor) return static_cast<std::ptrdiff_t>(i);
  return -1;
}

OperationGraph operation_graph_of(const JsonView& line) {
  OperationGraph graph;
  if (line.at("operations").size() > kLargestGraph || line.at("tensors").size() > kLargestGraph)
    throw InputError("a graph may have 4,096 operations and tensors");
  line.at("tensors").for_each([&](const JsonView& one) { graph.tensors.push_back(tensor_of(one)); });
  line.at("operations").for_each([&](const JsonView& one) {
    Operation operation;
    operation.name = one.at("operation").text();
    operation.inputs = parts_of(one.at("inputs"), graph);
    operation.outputs = parts_of(one.at("outputs"), graph);
    graph.operations.push_back(std::move(operation));
  });
  if (graph.operations.empty()) throw InputError("'operations' of a graph must not be empty");
  return graph;
}

int bits_of(const std::string& dtype) {
  static constexpr std::array<std::pair<std::string_view, int>, 18> kBits{{{"fp32", 32},
                                                                           {"fp64", 64},
                                                                           {"fp16", 16},
                                                                           {"bf16", 16},
                                                                           {"fp8", 8},
                                                                           {"fp8_e5m2", 8},
                                                                           {"fp8_e8m0", 8},
                                                                           {"fp4", 4},
                                                                           {"int8", 8},
                                                                           {"uint8", 8},
                                                                           {"int32", 32},
                                                                           {"uint32", 32},
                                                                           {"int64", 64},
                                                                           {"boolean", 1},
                                                                           {"int4", 4},
                                                                           {"uint4", 4},
                                                                           {"complex64", 64},
                                                                           {"complex128", 128}}};
  const auto known = std::find_if(kBits.begin(), kBits.end(), [&](const auto& one) { return one.first == dtype; });
  return known == kBits.end() ? 0 : known->second;
}

std::int64_t elements_of(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < tensor.dimensions.size(); ++i)
    if (tensor.strides[i] > 0) elements *= tensor.dimensions[i];
  return elements;
}

std::int64_t bytes_of(const Tensor& tensor) {
  return (elements_of(tensor) * bits_of(tensor.dtype) + 7) / 8;
}

}  // namespace manyworlds::experiments::cudnn_graphs
