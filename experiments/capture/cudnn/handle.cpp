#include "experiments/capture/cudnn/handle.hpp"

#include <cstdio>

namespace manyworlds::experiments::capture::cudnn {
namespace {

constexpr std::size_t kNewestDevice = 1210;  // CUDNN_MAX_DEVICE_VERSION

}  // namespace

Status ended(const char* call, const Outcome& outcome) {
  if (outcome.status == kFine) return kFine;
  const std::lock_guard lock(session().mutex);
  thread_state().cudnn_error = std::string(call) + ": " + outcome.because;
  recorded(Line(call).number("cudnn_error", outcome.status).text("because", outcome.because));
  return outcome.status;
}

Status recorded_on(Line line, void* handle) {
  recorded(line.number("stream", stream_number(static_cast<Handle*>(handle)->stream)));
  return kFine;
}

extern "C" {

std::size_t cudnnGetVersion() {
  return kVersion;
}
std::size_t cudnnGetCudartVersion() {
  return static_cast<std::size_t>(kCudaVersion);
}
std::size_t cudnnGetMaxDeviceVersion() {
  return kNewestDevice;
}
/// libraryPropertyType: major, minor and patch level.
Status cudnnGetProperty(int property, int* out) {
  if (out == nullptr || property < 0 || property > 2) return kBadParameter;
  const int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  *out = parts[property];
  return kFine;
}
Status cudnnGraphVersionCheck() {
  return kFine;
}
Status cudnnOpsVersionCheck() {
  return kFine;
}
Status cudnnCnnVersionCheck() {
  return kFine;
}
Status cudnnAdvVersionCheck() {
  return kFine;
}
/// Messages go to the record.
Status cudnnSetCallback(unsigned, void*, void*) {
  return kFine;
}

const char* cudnnGetErrorString(Status status) {
  return status_name(status);
}
void cudnnGetLastErrorString(char* out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return;
  std::snprintf(out, bytes, "%s", thread_state().cudnn_error.c_str());
  thread_state().cudnn_error.clear();
}

Status cudnnCreate(void** out) {
  if (out == nullptr) return ended("cudnnCreate", {kNullPointer, "the handle's address is null"});
  *out = new Handle;
  return kFine;
}
Status cudnnDestroy(void* handle) {
  delete static_cast<Handle*>(handle);
  return kFine;
}
Status cudnnSetStream(void* handle, void* stream) {
  if (handle == nullptr) return ended("cudnnSetStream", {kNullPointer, "the handle is null"});
  const std::unique_lock lock(session().mutex);
  const bool is_stream = stream_number(stream) >= 0;
  if (is_stream) static_cast<Handle*>(handle)->stream = stream;
  return is_stream ? kFine : kBadParameter;
}
Status cudnnGetStream(void* handle, void** out) {
  if (handle == nullptr || out == nullptr) return ended("cudnnGetStream", {kNullPointer, "an argument is null"});
  *out = static_cast<Handle*>(handle)->stream;
  return kFine;
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture::cudnn
