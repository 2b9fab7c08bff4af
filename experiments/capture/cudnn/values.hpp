// What crosses the boundary of cuDNN, in declarations of our own: numbers as its documentation has them ("cuDNN graph
// library", "cuDNN ops library"). tests/capture/cudnn_layouts.cpp compares them with an installed header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace manyworlds::experiments::capture::cudnn {

/// What is told to be: the version of which the names and attributes are.
inline constexpr std::size_t kVersion = 91900;

using Status = int;  // cudnnStatus_t
inline constexpr Status kFine = 0, kNotInitialized = 1001, kBadParameter = 2000, kNullPointer = 2002;
inline constexpr Status kNotFinalized = 2004, kSizeInsufficient = 2006, kShapeMismatch = 2008;
inline constexpr Status kAttributeType = 2010, kDescriptorType = 2012, kNotSupported = 3000;

inline constexpr int kLargestRank = 8;  // CUDNN_DIM_MAX

/// cudnnBackendAttributeType_t, and, below 0, attributes that may be given as one of two types.
enum class ValueType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  float32 = 4,
  float64 = 5,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  knob_type = 9,
  nan_propagation = 10,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  genstats_mode = 16,
  bn_finalize_mode = 17,
  reduction_operator = 18,
  behavior_note = 19,
  reordering_mode = 20,
  resample_mode = 21,
  padding_mode = 22,
  int32 = 23,
  character = 24,
  fraction = 26,
  norm_mode = 27,
  norm_phase = 28,
  rng_distribution = 29,
  moe_mode = 30,
  real = -1,  // float32 or float64
  int64_or_fraction = -2,
  int64_or_descriptor = -3
};

/// Returns whether values of a type may be given to an attribute.
bool is_given_as(ValueType attribute, int type);
/// Returns the bytes of an element of a type, cudnnBackendAttributeType_t, in the arrays of callers.
std::size_t element_bytes(int type);

/// cudnnDataType_t: the name in records, as of cudaDataType_t there; `type <number>` of one that is not known.
std::string data_type_name(int type);
/// Returns the bits of an element of cudnnDataType_t; 0 if it is not known.
int data_type_bits(int type);

/// Returns the names in records of cudnnPointwiseMode_t, cudnnReduceTensorOp_t, cudnnBackendNormMode_t and
/// cudnnResampleMode_t; a number that is not known stands for itself.
std::string pointwise_name(int mode);
std::string reduction_name(int reduction);
std::string norm_name(int mode);
std::string resample_name(int mode);

/// Returns the name of a status, as cudnnGetErrorString() does.
const char* status_name(Status status);

}  // namespace manyworlds::experiments::capture::cudnn
