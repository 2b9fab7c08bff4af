// A descriptor of cuDNN's backend API: attributes that are set one by one, and then finalized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "experiments/capture/cudnn/attributes.hpp"

namespace manyworlds::experiments::capture::cudnn {

struct Descriptor;

/// What an attribute was set to: elements as the caller gave them, or descriptors that were final then.
struct Value {
  int type = 0;  // cudnnBackendAttributeType_t
  std::int64_t count = 0;
  std::vector<std::byte> elements;
  std::vector<std::shared_ptr<const Descriptor>> descriptors;
};

struct Descriptor {
  const Kind* kind = nullptr;
  bool is_final = false;
  std::map<int, Value> values;  // by attribute
  int plan = -1;                // the number of an execution plan in records

  /// The elements of an attribute; none if it is not set.
  std::vector<std::int64_t> int64s(int attribute) const;
  /// The dimensions of a tensor in elements, also along the axis whose elements are vectors (CUDNN_TENSOR_NCHW_VECT_C).
  std::vector<std::int64_t> dimensions() const;
  bool has_vectors() const;
  /// The first element of an attribute whose type has 1 or 4 bytes; `otherwise` if it is not set.
  int number(int attribute, int otherwise = 0) const;
  /// What an attribute names; null if it is not set.
  const Descriptor* descriptor(int attribute) const;
  const std::vector<std::shared_ptr<const Descriptor>>& descriptors(int attribute) const;
};

/// What a cudnnBackendDescriptor_t points to.
struct DescriptorHandle {
  std::shared_ptr<Descriptor> descriptor;
};

/// Numbers of attributes and of kinds of which more is asked than what attributes.cpp says.
namespace attribute {
inline constexpr int kPointwiseMode = 0, kDilations = 102, kFilterStrides = 103, kPostPaddings = 104;
inline constexpr int kPrePaddings = 105, kSpatialDimensions = 106;
inline constexpr int kHeuristicGraph = 201, kHeuristicResults = 202;
inline constexpr int kConfigEngine = 300, kConfigWorkspace = 303, kConfigSharedMemory = 304;
inline constexpr int kPlanConfig = 401, kPlanWorkspace = 402;
inline constexpr int kForwardConvolution = 702, kDataConvolution = 708, kFilterConvolution = 714;
inline constexpr int kPointwise = 750, kMatmul = 1523, kRng = 2312;
inline constexpr int kGraphOperations = 801, kGraphEngineCount = 802;
inline constexpr int kTensorType = 901, kTensorDimensions = 902, kTensorStrides = 903, kTensorId = 906;
inline constexpr int kTensorVectorCount = 904, kTensorVectorAxis = 905, kTensorIsVirtual = 907, kTensorIsByValue = 908,
                     kTensorRaggedOffset = 913;
inline constexpr int kPackIds = 1000, kPackPointers = 1001, kPackWorkspace = 1003;
inline constexpr int kEngineGraph = 1300, kEngineIndex = 1301;
inline constexpr int kReductionOperator = 1600, kReduction = 1612;
inline constexpr int kResampleMode = 1700, kResampleForward = 1716, kResampleBackward = 1725;
inline constexpr int kNormForwardMode = 2000, kNormBackwardMode = 2100;
}  // namespace attribute
namespace kind {
inline constexpr int kEngine = 2, kEngineConfig = 3, kHeuristics = 4, kExecutionPlan = 5;
inline constexpr int kOperationGraph = 15, kVariantPack = 16, kTensor = 17;
}  // namespace kind

/// How a call ended; `because` is for people, and empty of a success.
struct Outcome {
  Status status = kFine;
  std::string because;
};

/// Sets an attribute, as cudnnBackendSetAttribute() does: not of a final descriptor, with a type that the attribute
/// has, and with descriptors that are final.
Outcome set(Descriptor& of, int attribute, int type, std::int64_t count, const void* elements);

/// Writes up to `room` elements of an attribute, as cudnnBackendGetAttribute() does, and how many there are. Of
/// descriptors, it fills those that the caller made. `elements` and `count` may be null.
Outcome get(const Descriptor& of, int attribute, int type, std::int64_t room, std::int64_t* count, void* elements);

/// Makes a descriptor final, if it has what its kind must have, and its tensors agree.
Outcome finalize(Descriptor& of);

}  // namespace manyworlds::experiments::capture::cudnn
