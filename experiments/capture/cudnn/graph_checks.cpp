#include "experiments/capture/cudnn/graph_checks.hpp"

#include <algorithm>
#include <string>

namespace manyworlds::experiments::capture::cudnn {
namespace {

using Extents = std::vector<std::int64_t>;

std::string text_of(const Extents& extents) {
  std::string text = "[";
  for (const std::int64_t one : extents) text += (text.size() > 1 ? "," : "") + std::to_string(one);
  return text + "]";
}

Outcome check_tensor(const Descriptor& of) {
  const Extents dimensions = of.int64s(attribute::kTensorDimensions), strides = of.int64s(attribute::kTensorStrides);
  if (dimensions.size() > kLargestRank)
    return {kBadParameter, text_of(dimensions) + " are more dimensions than " + std::to_string(kLargestRank)};
  if (std::any_of(dimensions.begin(), dimensions.end(), [](std::int64_t one) { return one < 1; }))
    return {kBadParameter, "dimensions of " + text_of(dimensions) + " are below 1"};
  if (dimensions.size() != strides.size())
    return {kShapeMismatch, text_of(dimensions) + " has strides " + text_of(strides)};
  if (data_type_bits(of.number(attribute::kTensorType)) == 0) return {kNotSupported, "the data type is not known"};
  return {};
}

Outcome check_convolution(const Descriptor& of) {
  const Extents spatial = of.int64s(attribute::kSpatialDimensions);
  for (const int array :
       {attribute::kDilations, attribute::kFilterStrides, attribute::kPrePaddings, attribute::kPostPaddings})
    if (static_cast<std::int64_t>(of.int64s(array).size()) != spatial.front())
      return {kBadParameter,
              text_of(of.int64s(array)) + " is not of " + std::to_string(spatial.front()) + " spatial dimensions"};
  return {};
}

/// The dimensions of a tensor of an operation, by its name in records.
Extents dimensions_of(const Descriptor& operation, const std::string& member) {
  for (const Attribute& one : operation.kind->attributes)
    if (one.member == member)
      if (const Descriptor* tensor = operation.descriptor(one.number)) return tensor->dimensions();
  return {};
}

/// C[.., m, n] = A[.., m, k] B[.., k, n], whose leading dimensions are those of C or divide them.
Outcome check_matmul(const Descriptor& of) {
  const Extents a = dimensions_of(of, "a"), b = dimensions_of(of, "b"), c = dimensions_of(of, "c");
  const std::size_t rank = c.size();
  bool agree = rank >= 2 && a.size() == rank && b.size() == rank;
  agree = agree && a[rank - 1] == b[rank - 2] && a[rank - 2] == c[rank - 2] && b[rank - 1] == c[rank - 1];
  for (std::size_t i = 0; agree && i + 2 < rank; ++i) agree = c[i] % a[i] == 0 && c[i] % b[i] == 0;
  if (agree) return {};
  return {kShapeMismatch, text_of(a) + " by " + text_of(b) + " is not " + text_of(c)};
}

/// Y[n, k, ..] of X[n, c, ..] and W[k, c / groups, ..], or gradients of the same shapes.
Outcome check_convolved(const Descriptor& of, const char* x_name, const char* w_name, const char* y_name) {
  const Extents x = dimensions_of(of, x_name), w = dimensions_of(of, w_name), y = dimensions_of(of, y_name);
  const bool agree =
      x.size() >= 3 && x.size() == w.size() && x.size() == y.size() && x[0] == y[0] && w[0] == y[1] && x[1] % w[1] == 0;
  if (agree) return {};
  return {kShapeMismatch, text_of(x) + " with the filter " + text_of(w) + " is not " + text_of(y)};
}

Outcome check_named(const Descriptor& of, int attribute, int kind) {
  if (of.descriptor(attribute)->kind->number == kind) return {};
  return {kDescriptorType, std::string("CUDNN_ATTR_") + attribute_of(*of.kind, attribute)->name +
                               " must be a CUDNN_BACKEND_" + kind_of(kind)->name + "_DESCRIPTOR"};
}

/// The kinds of descriptors that attributes with settings name.
constexpr struct {
  int attribute, kind;
} kSettings[] = {
    {attribute::kForwardConvolution, 1}, {attribute::kDataConvolution, 1},   {attribute::kFilterConvolution, 1},
    {attribute::kPointwise, 0},          {attribute::kMatmul, 18},           {attribute::kReduction, 21},
    {attribute::kResampleForward, 24},   {attribute::kResampleBackward, 24}, {attribute::kRng, 32}};

/// Whether the tensors and settings that a descriptor names are of the kinds that they must be of.
Outcome check_kinds(const Descriptor& of) {
  for (const auto& [attribute, kind] : kSettings)
    if (of.descriptor(attribute) != nullptr)
      if (Outcome wrong = check_named(of, attribute, kind); wrong.status != kFine) return wrong;
  for (const Attribute& one : of.kind->attributes) {
    if (one.role == Role::setting) continue;
    for (const auto& tensor : of.descriptors(one.number))
      if (tensor->kind->number != kind::kTensor)
        return {kDescriptorType, std::string("CUDNN_ATTR_") + one.name + " is no tensor"};
  }
  return {};
}

Outcome check_graph(const Descriptor& of) {
  for (const auto& operation : of.descriptors(attribute::kGraphOperations))
    if (*operation->kind->operation == '\0') return {kDescriptorType, "CUDNN_ATTR_OPERATIONGRAPH_OPS has what is none"};
  return {};
}

Outcome check_pack(const Descriptor& of) {
  const std::int64_t ids = of.values.at(attribute::kPackIds).count,
                     pointers = of.values.at(attribute::kPackPointers).count;
  if (ids == pointers) return {};
  return {kBadParameter, std::to_string(ids) + " ids of tensors, and " + std::to_string(pointers) + " pointers"};
}

Outcome check_engine(const Descriptor& of) {
  const std::int64_t index = of.int64s(attribute::kEngineIndex).front();
  if (index != 0) return {kNotSupported, "a captured graph has engine 0 alone, not " + std::to_string(index)};
  return check_named(of, attribute::kEngineGraph, kind::kOperationGraph);
}

}  // namespace

Outcome check(const Descriptor& of) {
  if (Outcome wrong = check_kinds(of); wrong.status != kFine) return wrong;
  const std::string operation = of.kind->operation, name = of.kind->name;
  if (operation == "matmul") return check_matmul(of);
  if (operation == "convolution_forward") return check_convolved(of, "x", "w", "y");
  if (operation == "convolution_weight_gradient") return check_convolved(of, "x", "dw", "dy");
  if (operation == "convolution_data_gradient") return check_convolved(of, "dx", "w", "dy");
  if (name == "CONVOLUTION") return check_convolution(of);
  switch (of.kind->number) {
    case kind::kTensor:
      return check_tensor(of);
    case kind::kOperationGraph:
      return check_graph(of);
    case kind::kEngine:
      return check_engine(of);
    case kind::kEngineConfig:
      return check_named(of, attribute::kConfigEngine, kind::kEngine);
    case kind::kExecutionPlan:
      return check_named(of, attribute::kPlanConfig, kind::kEngineConfig);
    case kind::kHeuristics:
      return check_named(of, attribute::kHeuristicGraph, kind::kOperationGraph);
    case kind::kVariantPack:
      return check_pack(of);
    default:
      return {};
  }
}

}  // namespace manyworlds::experiments::capture::cudnn
