// Convolutions of cuDNN's legacy API. There is one algorithm for each direction, which needs no workspace. After the
// cuDNN documentation, "cudnn_cnn".
#include "experiments/capture/cudnn/legacy_call.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

constexpr int kAlgorithm = 1;  // of each direction, one that is deterministic

/// cudnnConvolutionFwdAlgoPerf_t, and those of gradients.
struct Performance {
  int algorithm;
  Status status;
  float ms;
  std::size_t workspace_bytes;
  int is_deterministic, math_type, reserved[3];
};
static_assert(sizeof(Performance) == 48);

Status find(const char* call, const void* settings, int asked, int* found, Performance* out) {
  if (settings == nullptr || found == nullptr || out == nullptr)
    return ended(call, {kNullPointer, "an argument is null"});
  if (asked < 1) return ended(call, {kBadParameter, "no algorithm is asked for"});
  out[0] = {kAlgorithm, kFine, 1, 0, 1, static_cast<const ConvolutionSettings*>(settings)->math_type, {}};
  *found = 1;
  return kFine;
}

Status give_count(int* out) {
  if (out == nullptr) return kNullPointer;
  *out = 1;
  return kFine;
}
Status give_no_bytes(std::size_t* out) {
  if (out == nullptr) return kNullPointer;
  *out = 0;
  return kFine;
}

struct Tensor {
  const char* part;
  const void *descriptor, *data;
};

/// A convolution in one of three directions: Y must have the shape that follows from X and the filter.
LegacyCall convolution(const char* call, const char* operation, const Tensor& first, const Tensor& second,
                       const Tensor& result, const void* settings, const void* x, const void* w, const char* y_part,
                       const void* y) {
  LegacyCall of(call, operation);
  of.input(first.part, first.descriptor, first.data).input(second.part, second.descriptor, second.data);
  of.output(result.part, result.descriptor, result.data);
  if (settings == nullptr) of.input("the convolution", nullptr, nullptr);
  if (settings == nullptr || x == nullptr || w == nullptr) return of;  // which fails
  const auto& by = *static_cast<const ConvolutionSettings*>(settings);
  of.list("strides", by.strides).list("dilations", by.dilations).list("paddings", by.paddings);
  of.must_be(y_part, y, convolved(*static_cast<const TensorShape*>(x), *static_cast<const TensorShape*>(w), by));
  return of;
}

}  // namespace

extern "C" {

Status cudnnGetConvolutionForwardAlgorithmMaxCount(void*, int* out) {
  return give_count(out);
}
Status cudnnGetConvolutionBackwardDataAlgorithmMaxCount(void*, int* out) {
  return give_count(out);
}
Status cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(void*, int* out) {
  return give_count(out);
}
Status cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void* settings, void*, int asked, int* found,
                                              Performance* out) {
  return find("cudnnGetConvolutionForwardAlgorithm_v7", settings, asked, found, out);
}
Status cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void*, void*, void* settings, void*, int asked, int* found,
                                                   Performance* out) {
  return find("cudnnGetConvolutionBackwardDataAlgorithm_v7", settings, asked, found, out);
}
Status cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void*, void*, void* settings, void*, int asked, int* found,
                                                     Performance* out) {
  return find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", settings, asked, found, out);
}
/// Those that measure would run the convolution some times: here they do not.
Status cudnnFindConvolutionForwardAlgorithm(void*, void*, void*, void* settings, void*, int asked, int* found,
                                            Performance* out) {
  return find("cudnnFindConvolutionForwardAlgorithm", settings, asked, found, out);
}
Status cudnnFindConvolutionBackwardDataAlgorithm(void*, void*, void*, void* settings, void*, int asked, int* found,
                                                 Performance* out) {
  return find("cudnnFindConvolutionBackwardDataAlgorithm", settings, asked, found, out);
}
Status cudnnFindConvolutionBackwardFilterAlgorithm(void*, void*, void*, void* settings, void*, int asked, int* found,
                                                   Performance* out) {
  return find("cudnnFindConvolutionBackwardFilterAlgorithm", settings, asked, found, out);
}
Status cudnnFindConvolutionForwardAlgorithmEx(void*, void*, const void*, void*, const void*, void* settings, void*,
                                              void*, int asked, int* found, Performance* out, void*, std::size_t) {
  return find("cudnnFindConvolutionForwardAlgorithmEx", settings, asked, found, out);
}
Status cudnnFindConvolutionBackwardDataAlgorithmEx(void*, void*, const void*, void*, const void*, void* settings, void*,
                                                   void*, int asked, int* found, Performance* out, void*, std::size_t) {
  return find("cudnnFindConvolutionBackwardDataAlgorithmEx", settings, asked, found, out);
}
Status cudnnFindConvolutionBackwardFilterAlgorithmEx(void*, void*, const void*, void*, const void*, void* settings,
                                                     void*, void*, int asked, int* found, Performance* out, void*,
                                                     std::size_t) {
  return find("cudnnFindConvolutionBackwardFilterAlgorithmEx", settings, asked, found, out);
}
Status cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* out) {
  return give_no_bytes(out);
}
Status cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* out) {
  return give_no_bytes(out);
}
Status cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* out) {
  return give_no_bytes(out);
}

Status cudnnConvolutionForward(void* handle, const void*, void* x_shape, const void* x, void* w_shape, const void* w,
                               void* settings, int, void*, std::size_t, const void*, void* y_shape, void* y) {
  return convolution("cudnnConvolutionForward", "convolution_forward", {"x", x_shape, x}, {"w", w_shape, w},
                     {"y", y_shape, y}, settings, x_shape, w_shape, "y", y_shape)
      .recorded(handle);
}
Status cudnnConvolutionBackwardData(void* handle, const void*, void* w_shape, const void* w, void* dy_shape,
                                    const void* dy, void* settings, int, void*, std::size_t, const void*,
                                    void* dx_shape, void* dx) {
  return convolution("cudnnConvolutionBackwardData", "convolution_data_gradient", {"w", w_shape, w},
                     {"dy", dy_shape, dy}, {"dx", dx_shape, dx}, settings, dx_shape, w_shape, "dy", dy_shape)
      .recorded(handle);
}
Status cudnnConvolutionBackwardFilter(void* handle, const void*, void* x_shape, const void* x, void* dy_shape,
                                      const void* dy, void* settings, int, void*, std::size_t, const void*,
                                      void* dw_shape, void* dw) {
  return convolution("cudnnConvolutionBackwardFilter", "convolution_weight_gradient", {"x", x_shape, x},
                     {"dy", dy_shape, dy}, {"dw", dw_shape, dw}, settings, x_shape, dw_shape, "dy", dy_shape)
      .recorded(handle);
}
Status cudnnConvolutionBiasActivationForward(void* handle, const void*, void* x_shape, const void* x, void* w_shape,
                                             const void* w, void* settings, int, void*, std::size_t, const void*,
                                             void* z_shape, const void* z, void* bias_shape, const void* bias, void*,
                                             void* y_shape, void* y) {
  return convolution("cudnnConvolutionBiasActivationForward", "convolution_forward", {"x", x_shape, x},
                     {"w", w_shape, w}, {"y", y_shape, y}, settings, x_shape, w_shape, "y", y_shape)
      .input_if_any("z", z_shape, z)
      .input("bias", bias_shape, bias)
      .recorded(handle);
}
Status cudnnConvolutionBackwardBias(void* handle, const void*, void* dy_shape, const void* dy, const void*,
                                    void* db_shape, void* db) {
  return LegacyCall("cudnnConvolutionBackwardBias", "bias_gradient")
      .input("dy", dy_shape, dy)
      .output("db", db_shape, db)
      .recorded(handle);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture::cudnn
