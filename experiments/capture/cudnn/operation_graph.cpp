#include "experiments/capture/cudnn/operation_graph.hpp"

#include <algorithm>

#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

std::string list_text(const std::vector<std::int64_t>& of) {
  std::string text = "[";
  for (const std::int64_t one : of) text += (text.size() > 1 ? "," : "") + std::to_string(one);
  return text + "]";
}

std::string tensor_text(const GraphTensor& tensor) {
  std::string text = "{\"id\":" + std::to_string(tensor.id) + ",\"dims\":" + list_text(tensor.dimensions) +
                     ",\"strides\":" + list_text(tensor.strides) + ",\"dtype\":" + quoted(data_type_name(tensor.type));
  if (tensor.is_virtual) text += ",\"virtual\":true";
  if (tensor.is_by_value) text += ",\"by_value\":true";
  if (tensor.is_ragged) text += ",\"ragged\":true";
  return text + "}";
}

std::string parts_text(const std::vector<std::pair<std::string, std::int64_t>>& parts) {
  std::string text = "[";
  for (const auto& [part, id] : parts)
    text += (text.size() > 1 ? ",[" : "[") + quoted(part) + "," + std::to_string(id) + "]";
  return text + "]";
}

std::string operation_text(const GraphOperation& operation) {
  std::string text = "{\"operation\":" + quoted(operation.name) + ",\"inputs\":" + parts_text(operation.inputs) +
                     ",\"outputs\":" + parts_text(operation.outputs);
  for (const auto& [name, list] : operation.lists) text += "," + quoted(name) + ":" + list_text(list);
  return text + "}";
}

template <typename T, typename Text>
std::string texts(const std::vector<T>& all, Text text_of) {
  std::string text = "[";
  for (const T& one : all) text += (text.size() > 1 ? "," : "") + text_of(one);
  return text + "]";
}

GraphTensor tensor_of(const Descriptor& of) {
  GraphTensor tensor;
  tensor.id = of.int64s(attribute::kTensorId).front();
  tensor.dimensions = of.dimensions();
  tensor.strides = of.int64s(attribute::kTensorStrides);
  tensor.type = of.number(attribute::kTensorType);
  tensor.is_virtual = of.number(attribute::kTensorIsVirtual) != 0;
  tensor.is_by_value = of.number(attribute::kTensorIsByValue) != 0;
  tensor.is_ragged = of.descriptor(attribute::kTensorRaggedOffset) != nullptr;
  tensor.has_vectors = of.has_vectors();
  return tensor;
}

/// What a setting of the operation's own descriptor says of it: "exp" of a pointwise operation, "max" of a reduction.
std::string operation_name(const Descriptor& of) {
  const std::string name = of.kind->operation;
  if (name == "pointwise")
    return pointwise_name(of.descriptor(attribute::kPointwise)->number(attribute::kPointwiseMode));
  if (name == "reduction")
    return "reduction_" + reduction_name(of.descriptor(attribute::kReduction)->number(attribute::kReductionOperator));
  if (name == "norm_forward") return norm_name(of.number(attribute::kNormForwardMode)) + "_forward";
  if (name == "norm_backward") return norm_name(of.number(attribute::kNormBackwardMode)) + "_backward";
  for (const int resample : {attribute::kResampleForward, attribute::kResampleBackward})
    if (const Descriptor* settings = of.descriptor(resample))
      return name + "_" + resample_name(settings->number(attribute::kResampleMode));
  return name;
}

void add_lists(const Descriptor& of, GraphOperation& to) {
  for (const int convolution :
       {attribute::kForwardConvolution, attribute::kDataConvolution, attribute::kFilterConvolution})
    if (const Descriptor* settings = of.descriptor(convolution))
      to.lists = {{"strides", settings->int64s(attribute::kFilterStrides)},
                  {"dilations", settings->int64s(attribute::kDilations)},
                  {"paddings", settings->int64s(attribute::kPrePaddings)}};
}

GraphOperation operation_of(const Descriptor& of, OperationGraph& graph) {
  GraphOperation operation;
  operation.name = operation_name(of);
  for (const Attribute& one : of.kind->attributes) {
    if (one.role == Role::setting) continue;
    const auto& tensors = of.descriptors(one.number);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const GraphTensor tensor = tensor_of(*tensors[i]);
      if (graph.tensor(tensor.id) == nullptr) graph.tensors.push_back(tensor);
      const std::string part = tensors.size() > 1 ? one.member + std::to_string(i) : one.member;
      (one.role == Role::input ? operation.inputs : operation.outputs).emplace_back(part, tensor.id);
    }
  }
  add_lists(of, operation);
  return operation;
}

/// The bytes from the first element of a tensor to the end of its last one.
std::size_t reached_bytes(const GraphTensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.dimensions.size(); ++i) last += (tensor.dimensions[i] - 1) * tensor.strides[i];
  return static_cast<std::size_t>((last + 1) * data_type_bits(tensor.type) + 7) / 8;
}

}  // namespace

const GraphTensor* OperationGraph::tensor(std::int64_t id) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const GraphTensor& one) { return one.id == id; });
  return found == tensors.end() ? nullptr : &*found;
}

OperationGraph graph_of(const Descriptor& graph) {
  OperationGraph result;
  for (const auto& operation : graph.descriptors(attribute::kGraphOperations))
    result.operations.push_back(operation_of(*operation, result));
  return result;
}

void describe(Line& line, const OperationGraph& graph) {
  line.json("tensors", texts(graph.tensors, tensor_text)).json("operations", texts(graph.operations, operation_text));
}

void describe_data(Line& line, const OperationGraph& graph, const std::vector<const void*>& pointers) {
  std::string data = "[";
  bool is_beyond = false;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const GraphTensor& tensor = graph.tensors[i];
    if (tensor.is_virtual) continue;
    data += (data.size() > 1 ? ",[" : "[") + std::to_string(tensor.id) + "," + place(pointers[i]) + "]";
    const auto found = session().memory.find(pointers[i]);
    if (found && !tensor.is_ragged && !tensor.has_vectors && !tensor.is_by_value)
      is_beyond = is_beyond || found->reach(reached_bytes(tensor)) != Reach::within;
  }
  line.json("data", data + "]");
  if (is_beyond) line.text("beyond_allocation", "data");
}

}  // namespace manyworlds::experiments::capture::cudnn
