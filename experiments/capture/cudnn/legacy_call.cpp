#include "experiments/capture/cudnn/legacy_call.hpp"

namespace manyworlds::experiments::capture::cudnn {
namespace {

constexpr int kChannelsLast = 1;  // CUDNN_TENSOR_NHWC

/// How many places a window has along an axis; 0 if it does not fit.
int places(int extent, int window, int padding, int stride, int dilation) {
  const int room = extent + 2 * padding - ((window - 1) * dilation + 1);
  return room < 0 || stride < 1 ? 0 : room / stride + 1;
}

}  // namespace

std::vector<int> packed_strides(const std::vector<int>& dimensions, int format) {
  std::vector<int> strides(dimensions.size(), 1);
  int next = 1;
  const bool is_channels_last = format == kChannelsLast && dimensions.size() > 2;
  if (is_channels_last) next = dimensions[1];
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    if (is_channels_last && i == 1) continue;
    strides[i] = next;
    next *= dimensions[i];
  }
  return strides;
}

std::vector<int> convolved(const TensorShape& x, const TensorShape& w, const ConvolutionSettings& by) {
  const std::size_t axes = by.strides.size();
  if (axes == 0 || x.dimensions.size() != axes + 2 || w.dimensions.size() != axes + 2) return {};
  if (x.dimensions[1] != w.dimensions[1] * by.groups) return {};
  std::vector<int> y{x.dimensions[0], w.dimensions[0]};
  for (std::size_t i = 0; i < axes; ++i)
    y.push_back(places(x.dimensions[i + 2], w.dimensions[i + 2], by.paddings[i], by.strides[i], by.dilations[i]));
  return y;
}

std::vector<int> pooled(const TensorShape& x, const PoolingSettings& by) {
  const std::size_t axes = by.window.size();
  if (axes == 0 || x.dimensions.size() != axes + 2) return {};
  std::vector<int> y{x.dimensions[0], x.dimensions[1]};
  for (std::size_t i = 0; i < axes; ++i)
    y.push_back(places(x.dimensions[i + 2], by.window[i], by.paddings[i], by.strides[i], 1));
  return y;
}

void LegacyCall::refuse(Status status, const std::string& because) {
  if (outcome_.status == kFine) outcome_ = {status, because};
}

LegacyCall& LegacyCall::add(const char* part, const void* descriptor, const void* data,
                            std::vector<std::pair<std::string, std::int64_t>>& to) {
  const auto* shape = static_cast<const TensorShape*>(descriptor);
  if (shape == nullptr || data == nullptr) {
    refuse(kNullPointer, std::string(part) + " or its descriptor is null");
    return *this;
  }
  if (shape->dimensions.empty()) refuse(kBadParameter, std::string(part) + " has no dimensions");
  GraphTensor tensor;
  tensor.id = static_cast<std::int64_t>(graph_.tensors.size());
  tensor.dimensions.assign(shape->dimensions.begin(), shape->dimensions.end());
  tensor.strides.assign(shape->strides.begin(), shape->strides.end());
  tensor.type = shape->type;
  to.emplace_back(part, tensor.id);
  graph_.tensors.push_back(tensor);
  data_.push_back(data);
  return *this;
}

LegacyCall& LegacyCall::list(const char* name, const std::vector<int>& values) {
  operation_.lists.emplace_back(name, std::vector<std::int64_t>(values.begin(), values.end()));
  return *this;
}

LegacyCall& LegacyCall::must_be(const char* part, const void* descriptor, const std::vector<int>& dimensions) {
  const auto* shape = static_cast<const TensorShape*>(descriptor);
  if (shape != nullptr && shape->dimensions != dimensions)
    refuse(kShapeMismatch, std::string(part) + " is not of the shape that follows from the other tensors");
  return *this;
}

Status LegacyCall::recorded(void* handle) {
  if (handle == nullptr) refuse(kNullPointer, "the handle is null");
  if (outcome_.status != kFine) return ended(call_, outcome_);
  graph_.operations.push_back(operation_);
  const std::lock_guard lock(session().mutex);
  Line line(call_);
  describe(line, graph_);
  describe_data(line, graph_, data_);
  return recorded_on(line, handle);
}

}  // namespace manyworlds::experiments::capture::cudnn
