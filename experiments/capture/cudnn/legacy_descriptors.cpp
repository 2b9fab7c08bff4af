// Descriptors of cuDNN's legacy API: tensors, filters, convolutions, pooling, activations, arithmetic. After the cuDNN
// documentation, "cudnn_ops" and "cudnn_cnn".
#include <algorithm>

#include "experiments/capture/cudnn/legacy_call.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

template <typename T>
Status create(void** out) {
  if (out == nullptr) return kNullPointer;
  *out = new T;
  return kFine;
}
template <typename T>
Status destroy(void* descriptor) {
  delete static_cast<T*>(descriptor);
  return kFine;
}

Status set_shape(const char* call, void* descriptor, int type, std::vector<int> dimensions, std::vector<int> strides,
                 int format) {
  if (descriptor == nullptr) return ended(call, {kNullPointer, "the descriptor is null"});
  const bool is_shape = !dimensions.empty() && dimensions.size() <= kLargestRank &&
                        std::all_of(dimensions.begin(), dimensions.end(), [](int one) { return one > 0; });
  if (!is_shape) return ended(call, {kBadParameter, "the dimensions must be 1 to 8, each above 0"});
  if (data_type_bits(type) == 0) return ended(call, {kBadParameter, "the data type is not known"});
  *static_cast<TensorShape*>(descriptor) = {type, format, std::move(dimensions), std::move(strides)};
  return kFine;
}

Status set_packed(const char* call, void* descriptor, int format, int type, const std::vector<int>& dimensions) {
  if (format < 0 || format > 1)
    end_capture(std::string(call) + ": only the formats NCHW and NHWC are served, not " + std::to_string(format));
  return set_shape(call, descriptor, type, dimensions, packed_strides(dimensions, format), format);
}

std::vector<int> list_of(const int* values, int count) {
  return values == nullptr || count < 0 ? std::vector<int>() : std::vector<int>(values, values + count);
}

Status give(const std::vector<int>& from, int room, int* out) {
  if (out == nullptr) return kNullPointer;
  std::copy_n(from.begin(), std::min<std::size_t>(from.size(), static_cast<std::size_t>(std::max(room, 0))), out);
  return kFine;
}

Status give_bytes(const void* descriptor, std::size_t* out) {
  if (descriptor == nullptr || out == nullptr) return kNullPointer;
  const auto& of = *static_cast<const TensorShape*>(descriptor);
  std::size_t last = 0;
  for (std::size_t i = 0; i < of.dimensions.size(); ++i)
    last += static_cast<std::size_t>(of.dimensions[i] - 1) * static_cast<std::size_t>(of.strides[i]);
  *out = of.dimensions.empty() ? 0 : (last + 1) * static_cast<std::size_t>(data_type_bits(of.type)) / 8;
  return kFine;
}

Status give_shape(const char* call, const std::vector<int>& dimensions, std::size_t room, int* const out[]) {
  if (dimensions.size() != room) return ended(call, {kBadParameter, "the tensors and the settings do not agree"});
  for (std::size_t i = 0; i < room; ++i)
    if (out[i] != nullptr) *out[i] = dimensions[i];
  return kFine;
}

Status set_convolution(const char* call, void* descriptor, std::vector<int> paddings, std::vector<int> strides,
                       std::vector<int> dilations, int mode, int compute_type) {
  if (descriptor == nullptr) return ended(call, {kNullPointer, "the descriptor is null"});
  if (strides.empty() || paddings.size() != strides.size() || dilations.size() != strides.size())
    return ended(call, {kBadParameter, "paddings, strides and dilations must be as many as spatial dimensions"});
  auto& of = *static_cast<ConvolutionSettings*>(descriptor);
  of.paddings = std::move(paddings), of.strides = std::move(strides), of.dilations = std::move(dilations);
  of.mode = mode, of.compute_type = compute_type;
  return kFine;
}

Status set_number(void* descriptor, int ConvolutionSettings::*member, int value) {
  if (descriptor == nullptr) return kNullPointer;
  static_cast<ConvolutionSettings*>(descriptor)->*member = value;
  return kFine;
}
Status give_number(const void* descriptor, int ConvolutionSettings::*member, int* out) {
  if (descriptor == nullptr || out == nullptr) return kNullPointer;
  *out = static_cast<const ConvolutionSettings*>(descriptor)->*member;
  return kFine;
}

}  // namespace

extern "C" {

Status cudnnCreateTensorDescriptor(void** out) {
  return create<TensorShape>(out);
}
Status cudnnDestroyTensorDescriptor(void* descriptor) {
  return destroy<TensorShape>(descriptor);
}
Status cudnnSetTensor4dDescriptor(void* descriptor, int format, int type, int n, int c, int h, int w) {
  return set_packed("cudnnSetTensor4dDescriptor", descriptor, format, type, {n, c, h, w});
}
Status cudnnSetTensor4dDescriptorEx(void* descriptor, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                                    int h_stride, int w_stride) {
  return set_shape("cudnnSetTensor4dDescriptorEx", descriptor, type, {n, c, h, w},
                   {n_stride, c_stride, h_stride, w_stride}, 0);
}
Status cudnnSetTensorNdDescriptor(void* descriptor, int type, int count, const int* dimensions, const int* strides) {
  return set_shape("cudnnSetTensorNdDescriptor", descriptor, type, list_of(dimensions, count), list_of(strides, count),
                   0);
}
Status cudnnSetTensorNdDescriptorEx(void* descriptor, int format, int type, int count, const int* dimensions) {
  return set_packed("cudnnSetTensorNdDescriptorEx", descriptor, format, type, list_of(dimensions, count));
}
Status cudnnGetTensorNdDescriptor(void* descriptor, int room, int* type, int* count, int* dimensions, int* strides) {
  if (descriptor == nullptr || type == nullptr || count == nullptr) return kNullPointer;
  const auto& of = *static_cast<const TensorShape*>(descriptor);
  *type = of.type, *count = static_cast<int>(of.dimensions.size());
  const Status status = give(of.dimensions, room, dimensions);
  return status == kFine ? give(of.strides, room, strides) : status;
}
Status cudnnGetTensorSizeInBytes(void* descriptor, std::size_t* out) {
  return give_bytes(descriptor, out);
}

Status cudnnCreateFilterDescriptor(void** out) {
  return create<TensorShape>(out);
}
Status cudnnDestroyFilterDescriptor(void* descriptor) {
  return destroy<TensorShape>(descriptor);
}
Status cudnnSetFilter4dDescriptor(void* descriptor, int type, int format, int k, int c, int h, int w) {
  return set_packed("cudnnSetFilter4dDescriptor", descriptor, format, type, {k, c, h, w});
}
Status cudnnSetFilterNdDescriptor(void* descriptor, int type, int format, int count, const int* dimensions) {
  return set_packed("cudnnSetFilterNdDescriptor", descriptor, format, type, list_of(dimensions, count));
}
Status cudnnGetFilterNdDescriptor(void* descriptor, int room, int* type, int* format, int* count, int* dimensions) {
  if (descriptor == nullptr || type == nullptr || format == nullptr || count == nullptr) return kNullPointer;
  const auto& of = *static_cast<const TensorShape*>(descriptor);
  *type = of.type, *format = of.format, *count = static_cast<int>(of.dimensions.size());
  return give(of.dimensions, room, dimensions);
}
Status cudnnGetFilterSizeInBytes(void* descriptor, std::size_t* out) {
  return give_bytes(descriptor, out);
}

Status cudnnCreateConvolutionDescriptor(void** out) {
  return create<ConvolutionSettings>(out);
}
Status cudnnDestroyConvolutionDescriptor(void* descriptor) {
  return destroy<ConvolutionSettings>(descriptor);
}
Status cudnnSetConvolution2dDescriptor(void* descriptor, int pad_h, int pad_w, int stride_h, int stride_w,
                                       int dilation_h, int dilation_w, int mode, int compute_type) {
  return set_convolution("cudnnSetConvolution2dDescriptor", descriptor, {pad_h, pad_w}, {stride_h, stride_w},
                         {dilation_h, dilation_w}, mode, compute_type);
}
Status cudnnSetConvolutionNdDescriptor(void* descriptor, int count, const int* paddings, const int* strides,
                                       const int* dilations, int mode, int compute_type) {
  return set_convolution("cudnnSetConvolutionNdDescriptor", descriptor, list_of(paddings, count),
                         list_of(strides, count), list_of(dilations, count), mode, compute_type);
}
Status cudnnSetConvolutionMathType(void* descriptor, int type) {
  return set_number(descriptor, &ConvolutionSettings::math_type, type);
}
Status cudnnGetConvolutionMathType(void* descriptor, int* out) {
  return give_number(descriptor, &ConvolutionSettings::math_type, out);
}
Status cudnnSetConvolutionGroupCount(void* descriptor, int groups) {
  return groups < 1 ? kBadParameter : set_number(descriptor, &ConvolutionSettings::groups, groups);
}
Status cudnnGetConvolutionGroupCount(void* descriptor, int* out) {
  return give_number(descriptor, &ConvolutionSettings::groups, out);
}
Status cudnnSetConvolutionReorderType(void* descriptor, int type) {
  return set_number(descriptor, &ConvolutionSettings::reorder, type);
}
Status cudnnGetConvolution2dForwardOutputDim(void* descriptor, void* x, void* w, int* n, int* c, int* h, int* width) {
  const char* call = "cudnnGetConvolution2dForwardOutputDim";
  if (descriptor == nullptr || x == nullptr || w == nullptr) return ended(call, {kNullPointer, "an argument is null"});
  int* const out[] = {n, c, h, width};
  return give_shape(call,
                    convolved(*static_cast<TensorShape*>(x), *static_cast<TensorShape*>(w),
                              *static_cast<ConvolutionSettings*>(descriptor)),
                    4, out);
}
Status cudnnGetConvolutionNdForwardOutputDim(void* descriptor, void* x, void* w, int room, int* out) {
  const char* call = "cudnnGetConvolutionNdForwardOutputDim";
  if (descriptor == nullptr || x == nullptr || w == nullptr) return ended(call, {kNullPointer, "an argument is null"});
  const std::vector<int> y = convolved(*static_cast<TensorShape*>(x), *static_cast<TensorShape*>(w),
                                       *static_cast<ConvolutionSettings*>(descriptor));
  if (y.empty()) return ended(call, {kBadParameter, "the tensors and the settings do not agree"});
  return give(y, room, out);
}

Status cudnnCreatePoolingDescriptor(void** out) {
  return create<PoolingSettings>(out);
}
Status cudnnDestroyPoolingDescriptor(void* descriptor) {
  return destroy<PoolingSettings>(descriptor);
}
Status cudnnSetPooling2dDescriptor(void* descriptor, int mode, int nan, int window_h, int window_w, int pad_h,
                                   int pad_w, int stride_h, int stride_w) {
  if (descriptor == nullptr) return ended("cudnnSetPooling2dDescriptor", {kNullPointer, "the descriptor is null"});
  *static_cast<PoolingSettings*>(descriptor) = {mode, nan, {window_h, window_w}, {pad_h, pad_w}, {stride_h, stride_w}};
  return kFine;
}
Status cudnnSetPoolingNdDescriptor(void* descriptor, int mode, int nan, int count, const int* window,
                                   const int* paddings, const int* strides) {
  if (descriptor == nullptr) return ended("cudnnSetPoolingNdDescriptor", {kNullPointer, "the descriptor is null"});
  *static_cast<PoolingSettings*>(descriptor) = {mode, nan, list_of(window, count), list_of(paddings, count),
                                                list_of(strides, count)};
  return kFine;
}
Status cudnnGetPooling2dForwardOutputDim(void* descriptor, void* x, int* n, int* c, int* h, int* w) {
  const char* call = "cudnnGetPooling2dForwardOutputDim";
  if (descriptor == nullptr || x == nullptr) return ended(call, {kNullPointer, "an argument is null"});
  int* const out[] = {n, c, h, w};
  return give_shape(call, pooled(*static_cast<TensorShape*>(x), *static_cast<PoolingSettings*>(descriptor)), 4, out);
}

Status cudnnCreateActivationDescriptor(void** out) {
  return create<ActivationSettings>(out);
}
Status cudnnDestroyActivationDescriptor(void* descriptor) {
  return destroy<ActivationSettings>(descriptor);
}
Status cudnnSetActivationDescriptor(void* descriptor, int mode, int nan, double coefficient) {
  if (descriptor == nullptr) return ended("cudnnSetActivationDescriptor", {kNullPointer, "the descriptor is null"});
  *static_cast<ActivationSettings*>(descriptor) = {mode, nan, coefficient};
  return kFine;
}

Status cudnnCreateOpTensorDescriptor(void** out) {
  return create<ArithmeticSettings>(out);
}
Status cudnnDestroyOpTensorDescriptor(void* descriptor) {
  return destroy<ArithmeticSettings>(descriptor);
}
Status cudnnSetOpTensorDescriptor(void* descriptor, int operation, int compute_type, int) {
  if (descriptor == nullptr) return ended("cudnnSetOpTensorDescriptor", {kNullPointer, "the descriptor is null"});
  *static_cast<ArithmeticSettings*>(descriptor) = {operation, compute_type};
  return kFine;
}
Status cudnnCreateReduceTensorDescriptor(void** out) {
  return create<ArithmeticSettings>(out);
}
Status cudnnDestroyReduceTensorDescriptor(void* descriptor) {
  return destroy<ArithmeticSettings>(descriptor);
}
Status cudnnSetReduceTensorDescriptor(void* descriptor, int operation, int compute_type, int, int, int) {
  if (descriptor == nullptr) return ended("cudnnSetReduceTensorDescriptor", {kNullPointer, "the descriptor is null"});
  *static_cast<ArithmeticSettings*>(descriptor) = {operation, compute_type};
  return kFine;
}

/// Scales, biases, means and variances of [n, c, ..]: one for each of c, or of all but n
/// (CUDNN_BATCHNORM_PER_ACTIVATION).
Status cudnnDeriveBNTensorDescriptor(void* derived, void* x, int mode) {
  if (derived == nullptr || x == nullptr)
    return ended("cudnnDeriveBNTensorDescriptor", {kNullPointer, "a descriptor is null"});
  const auto& of = *static_cast<const TensorShape*>(x);
  std::vector<int> dimensions(of.dimensions.size(), 1);
  for (std::size_t i = 1; i < dimensions.size(); ++i)
    if (i == 1 || mode == 0) dimensions[i] = of.dimensions[i];
  const int type = data_type_bits(of.type) == 64 ? 1 : 0;  // fp64 of fp64, else fp32
  return set_packed("cudnnDeriveBNTensorDescriptor", derived, 0, type, dimensions);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture::cudnn
