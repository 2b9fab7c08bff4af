// Pooling, activations, softmax, batch normalisation and arithmetic of cuDNN's legacy API. After the cuDNN
// documentation, "cudnn_ops".
#include "experiments/capture/cudnn/legacy_call.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

/// The name of an operation whose settings are needed: "activation_forward".
LegacyCall with_settings(const char* call, const std::string& operation, const void* settings) {
  LegacyCall of(call, operation);
  if (settings == nullptr) of.input("the settings", nullptr, nullptr);
  return of;
}

std::string pooling(const char* direction, const void* settings) {
  if (settings == nullptr) return direction;
  const int mode = static_cast<const PoolingSettings*>(settings)->mode;
  const bool is_average = mode == 1 || mode == 2;  // with padding or without it; others are of the largest
  return std::string(is_average ? "average_pooling_" : "max_pooling_") + direction;
}

Status give_bytes(std::size_t bytes, std::size_t* out) {
  if (out == nullptr) return kNullPointer;
  *out = bytes;
  return kFine;
}

/// Scales, biases and statistics of batch normalisation, which share a shape; those that may be missing are null.
struct Channels {
  const void *shape, *scale, *bias, *mean, *variance;
};

LegacyCall normalised(const char* call, const char* operation, const void* x_shape, const void* x, const void* z_shape,
                      const void* z, const Channels& channels) {
  LegacyCall of(call, operation);
  of.input("x", x_shape, x).input_if_any("z", z_shape, z);
  return of.input("scale", channels.shape, channels.scale).input("bias", channels.shape, channels.bias);
}

Status train(const char* call, void* handle, const void* x_shape, const void* x, const void* z_shape, const void* z,
             const void* y_shape, const void* y, const Channels& running, const void* saved_mean,
             const void* saved_variance) {
  return normalised(call, "batch_norm_forward", x_shape, x, z_shape, z, running)
      .output("y", y_shape, y)
      .output_if_any("running_mean", running.shape, running.mean)
      .output_if_any("running_variance", running.shape, running.variance)
      .output_if_any("mean", running.shape, saved_mean)
      .output_if_any("inverse_variance", running.shape, saved_variance)
      .recorded(handle);
}

}  // namespace

extern "C" {

Status cudnnPoolingForward(void* handle, void* settings, const void*, void* x_shape, const void* x, const void*,
                           void* y_shape, void* y) {
  LegacyCall of = with_settings("cudnnPoolingForward", pooling("forward", settings), settings);
  of.input("x", x_shape, x).output("y", y_shape, y);
  if (settings != nullptr && x_shape != nullptr)
    of.must_be("y", y_shape, pooled(*static_cast<TensorShape*>(x_shape), *static_cast<PoolingSettings*>(settings)));
  return of.recorded(handle);
}
Status cudnnPoolingBackward(void* handle, void* settings, const void*, void* y_shape, const void* y, void* dy_shape,
                            const void* dy, void* x_shape, const void* x, const void*, void* dx_shape, void* dx) {
  return with_settings("cudnnPoolingBackward", pooling("backward", settings), settings)
      .input("y", y_shape, y)
      .input("dy", dy_shape, dy)
      .input("x", x_shape, x)
      .output("dx", dx_shape, dx)
      .recorded(handle);
}

Status cudnnActivationForward(void* handle, void* settings, const void*, void* x_shape, const void* x, const void*,
                              void* y_shape, void* y) {
  return with_settings("cudnnActivationForward", "activation_forward", settings)
      .input("x", x_shape, x)
      .output("y", y_shape, y)
      .recorded(handle);
}
Status cudnnActivationBackward(void* handle, void* settings, const void*, void* y_shape, const void* y, void* dy_shape,
                               const void* dy, void* x_shape, const void* x, const void*, void* dx_shape, void* dx) {
  return with_settings("cudnnActivationBackward", "activation_backward", settings)
      .input("y", y_shape, y)
      .input("dy", dy_shape, dy)
      .input("x", x_shape, x)
      .output("dx", dx_shape, dx)
      .recorded(handle);
}

Status cudnnSoftmaxForward(void* handle, int, int, const void*, void* x_shape, const void* x, const void*,
                           void* y_shape, void* y) {
  return LegacyCall("cudnnSoftmaxForward", "softmax_forward")
      .input("x", x_shape, x)
      .output("y", y_shape, y)
      .recorded(handle);
}
Status cudnnSoftmaxBackward(void* handle, int, int, const void*, void* y_shape, const void* y, void* dy_shape,
                            const void* dy, const void*, void* dx_shape, void* dx) {
  return LegacyCall("cudnnSoftmaxBackward", "softmax_backward")
      .input("y", y_shape, y)
      .input("dy", dy_shape, dy)
      .output("dx", dx_shape, dx)
      .recorded(handle);
}

Status cudnnAddTensor(void* handle, const void*, void* a_shape, const void* a, const void*, void* c_shape, void* c) {
  return LegacyCall("cudnnAddTensor", "add")
      .input("a", a_shape, a)
      .input("c", c_shape, c)
      .output("sum", c_shape, c)
      .recorded(handle);
}
Status cudnnOpTensor(void* handle, void* settings, const void*, void* a_shape, const void* a, const void*,
                     void* b_shape, const void* b, const void*, void* c_shape, void* c) {
  return with_settings("cudnnOpTensor", "elementwise", settings)
      .input("a", a_shape, a)
      .input_if_any("b", b_shape, b)
      .output("c", c_shape, c)
      .recorded(handle);
}
Status cudnnGetReductionWorkspaceSize(void*, void*, void*, void*, std::size_t* out) {
  return give_bytes(0, out);
}
Status cudnnGetReductionIndicesSize(void*, void*, void*, void*, std::size_t* out) {
  return give_bytes(0, out);
}
Status cudnnReduceTensor(void* handle, void* settings, void*, std::size_t, void*, std::size_t, const void*,
                         void* a_shape, const void* a, const void*, void* c_shape, void* c) {
  return with_settings("cudnnReduceTensor", "reduction", settings)
      .input("a", a_shape, a)
      .output("c", c_shape, c)
      .recorded(handle);
}
Status cudnnSetTensor(void* handle, void* y_shape, void* y, const void*) {
  return LegacyCall("cudnnSetTensor", "set").output("y", y_shape, y).recorded(handle);
}
Status cudnnScaleTensor(void* handle, void* y_shape, void* y, const void*) {
  return LegacyCall("cudnnScaleTensor", "scale").input("y", y_shape, y).output("scaled", y_shape, y).recorded(handle);
}

Status cudnnBatchNormalizationForwardInference(void* handle, int, const void*, const void*, void* x_shape,
                                               const void* x, void* y_shape, void* y, void* shape, const void* scale,
                                               const void* bias, const void* mean, const void* variance, double) {
  return normalised("cudnnBatchNormalizationForwardInference", "batch_norm_inference", x_shape, x, nullptr, nullptr,
                    {shape, scale, bias, mean, variance})
      .input("running_mean", shape, mean)
      .input("running_variance", shape, variance)
      .output("y", y_shape, y)
      .recorded(handle);
}
Status cudnnBatchNormalizationForwardTraining(void* handle, int, const void*, const void*, void* x_shape, const void* x,
                                              void* y_shape, void* y, void* shape, const void* scale, const void* bias,
                                              double, void* mean, void* variance, double, void* saved_mean,
                                              void* saved_variance) {
  return train("cudnnBatchNormalizationForwardTraining", handle, x_shape, x, nullptr, nullptr, y_shape, y,
               {shape, scale, bias, mean, variance}, saved_mean, saved_variance);
}
Status cudnnBatchNormalizationForwardTrainingEx(void* handle, int, int, const void*, const void*, void* x_shape,
                                                const void* x, void* z_shape, const void* z, void* y_shape, void* y,
                                                void* shape, const void* scale, const void* bias, double, void* mean,
                                                void* variance, double, void* saved_mean, void* saved_variance, void*,
                                                void*, std::size_t, void*, std::size_t) {
  return train("cudnnBatchNormalizationForwardTrainingEx", handle, x_shape, x, z_shape, z, y_shape, y,
               {shape, scale, bias, mean, variance}, saved_mean, saved_variance);
}
Status cudnnBatchNormalizationBackward(void* handle, int, const void*, const void*, const void*, const void*,
                                       void* x_shape, const void* x, void* dy_shape, const void* dy, void* dx_shape,
                                       void* dx, void* shape, const void* scale, void* dscale, void* dbias, double,
                                       const void* mean, const void* variance) {
  return LegacyCall("cudnnBatchNormalizationBackward", "batch_norm_backward")
      .input("x", x_shape, x)
      .input("dy", dy_shape, dy)
      .input("scale", shape, scale)
      .input_if_any("mean", shape, mean)
      .input_if_any("inverse_variance", shape, variance)
      .output("dx", dx_shape, dx)
      .output("dscale", shape, dscale)
      .output("dbias", shape, dbias)
      .recorded(handle);
}
Status cudnnBatchNormalizationBackwardEx(void* handle, int, int, const void*, const void*, const void*, const void*,
                                         void* x_shape, const void* x, void* y_shape, const void* y, void* dy_shape,
                                         const void* dy, void* dz_shape, void* dz, void* dx_shape, void* dx,
                                         void* shape, const void* scale, const void* bias, void* dscale, void* dbias,
                                         double, const void* mean, const void* variance, void*, void*, std::size_t,
                                         void*, std::size_t) {
  return LegacyCall("cudnnBatchNormalizationBackwardEx", "batch_norm_backward")
      .input("x", x_shape, x)
      .input_if_any("y", y_shape, y)
      .input("dy", dy_shape, dy)
      .input("scale", shape, scale)
      .input_if_any("bias", shape, bias)
      .input_if_any("mean", shape, mean)
      .input_if_any("inverse_variance", shape, variance)
      .output("dx", dx_shape, dx)
      .output_if_any("dz", dz_shape, dz)
      .output("dscale", shape, dscale)
      .output("dbias", shape, dbias)
      .recorded(handle);
}
Status cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                                std::size_t* out) {
  return give_bytes(0, out);
}
Status cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*, void*,
                                                         void*, std::size_t* out) {
  return give_bytes(0, out);
}
Status cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, std::size_t* out) {
  return give_bytes(0, out);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture::cudnn
