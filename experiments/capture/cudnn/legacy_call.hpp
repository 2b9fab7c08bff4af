// Calls of cuDNN's legacy API that give a device work: descriptors that say shapes, and the call as one operation on
// tensors, recorded as a graph of the backend API is.
#pragma once

#include <string>
#include <vector>

#include "experiments/capture/cudnn/handle.hpp"

namespace manyworlds::experiments::capture::cudnn {

/// What a cudnnTensorDescriptor_t or a cudnnFilterDescriptor_t points to. Filters are [k, c / groups, ..].
struct TensorShape {
  int type = 0, format = 0;  // cudnnDataType_t, cudnnTensorFormat_t
  std::vector<int> dimensions, strides;
};

/// What a cudnnConvolutionDescriptor_t points to.
struct ConvolutionSettings {
  std::vector<int> paddings, strides, dilations;
  int mode = 0, compute_type = 0, groups = 1, math_type = 0, reorder = 0;
};

/// What a cudnnPoolingDescriptor_t points to.
struct PoolingSettings {
  int mode = 0, propagates_nan = 0;
  std::vector<int> window, paddings, strides;
};

/// What a cudnnActivationDescriptor_t points to.
struct ActivationSettings {
  int mode = 0, propagates_nan = 0;
  double coefficient = 0;
};

/// What a cudnnOpTensorDescriptor_t or a cudnnReduceTensorDescriptor_t points to; `operation` is what it computes.
struct ArithmeticSettings {
  int operation = 0, compute_type = 0;
};

/// Strides of a tensor without gaps, in the order of cudnnTensorFormat_t: by channels last, or as dimensions stand.
std::vector<int> packed_strides(const std::vector<int>& dimensions, int format);

/// The shape of Y of a convolution of X by a filter; empty if they do not agree.
std::vector<int> convolved(const TensorShape& x, const TensorShape& w, const ConvolutionSettings& by);
/// The shape of what pooling makes of X; empty if they do not agree.
std::vector<int> pooled(const TensorShape& x, const PoolingSettings& by);

/// One call, in the making: tensors in the order of inputs and outputs, then recorded() writes it.
class LegacyCall {
 public:
  LegacyCall(const char* call, std::string operation) : call_(call) { operation_.name = std::move(operation); }
  LegacyCall& input(const char* part, const void* descriptor, const void* data) {
    return add(part, descriptor, data, operation_.inputs);
  }
  LegacyCall& output(const char* part, const void* descriptor, const void* data) {
    return add(part, descriptor, data, operation_.outputs);
  }
  /// Tensors that a caller may leave away.
  LegacyCall& input_if_any(const char* part, const void* descriptor, const void* data) {
    return data == nullptr ? *this : input(part, descriptor, data);
  }
  LegacyCall& output_if_any(const char* part, const void* descriptor, const void* data) {
    return data == nullptr ? *this : output(part, descriptor, data);
  }
  LegacyCall& list(const char* name, const std::vector<int>& values);
  /// Has the call fail unless a shape is what it must be.
  LegacyCall& must_be(const char* part, const void* descriptor, const std::vector<int>& dimensions);
  Status recorded(void* handle);

 private:
  LegacyCall& add(const char* part, const void* descriptor, const void* data,
                  std::vector<std::pair<std::string, std::int64_t>>& to);
  void refuse(Status status, const std::string& because);

  const char* call_;
  GraphOperation operation_;
  OperationGraph graph_;
  std::vector<const void*> data_;  // by tensor
  Outcome outcome_;
};

}  // namespace manyworlds::experiments::capture::cudnn
