// CUDA's functions of devices, versions and errors.
#include <cstring>

#include "experiments/capture/session.hpp"
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {
namespace {

struct NamedError {
  Error number;
  const char *name, *text;
};
constexpr NamedError kErrors[] = {
    {kSuccess, "cudaSuccess", "no error"},
    {kInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {kInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {kGraphUpdateFailed, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated graph update"},
    {kNotForLegacyStream, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

bool is_device(int device) {
  return device >= 0 && device < session().settings.devices;
}

Error version(const char* call, int* out) {
  const std::lock_guard lock(session().mutex);
  if (out == nullptr) return recorded(Line(call), kInvalidValue);
  *out = kCudaVersion;
  return recorded(Line(call).number("version", kCudaVersion));
}

[[noreturn]] void end_of_driver(const char* call, const char* symbol) {
  end_capture(std::string(call) + ": " + (symbol == nullptr ? "a function" : symbol) +
              " of CUDA's driver is not modelled: the program cannot be captured beyond this call");
}

}  // namespace

template <class Properties>
Error get_device_properties(Properties* out, int device) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaGetDeviceProperties").number("device", device);
  if (out == nullptr) return recorded(line, kInvalidValue);
  if (!is_device(device)) return recorded(line, kInvalidDevice);
  *out = device_properties<Properties>(session().settings);
  return recorded(line);
}
template Error get_device_properties(DeviceProperties12*, int);
template Error get_device_properties(DeviceProperties13*, int);

extern "C" {

Error cudaGetDeviceCount(int* out) {
  const std::lock_guard lock(session().mutex);
  if (out == nullptr) return recorded(Line("cudaGetDeviceCount"), kInvalidValue);
  *out = session().settings.devices;
  return recorded(Line("cudaGetDeviceCount").number("devices", *out));
}

Error cudaSetDevice(int device) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaSetDevice").number("device", device);
  if (!is_device(device)) return recorded(line, kInvalidDevice);
  thread_state().device = device;
  return recorded(line);
}

Error cudaGetDevice(int* out) {
  const std::lock_guard lock(session().mutex);
  if (out == nullptr) return recorded(Line("cudaGetDevice"), kInvalidValue);
  *out = thread_state().device;
  return recorded(Line("cudaGetDevice").number("device", *out));
}

Error cudaDeviceSynchronize() {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaDeviceSynchronize").number("device", thread_state().device));
}

Error cudaDeviceGetAttribute(int* out, int attribute, int device) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceGetAttribute").number("attribute", attribute).number("device", device);
  if (out == nullptr) return recorded(line, kInvalidValue);
  if (!is_device(device)) return recorded(line, kInvalidDevice);
  if (!device_attribute(session().settings, attribute, *out))
    end_capture("cudaDeviceGetAttribute: attribute " + std::to_string(attribute) + " is not modelled");
  return recorded(line);
}

/// Every device of the host reaches every other, as on the boards of the devices known here.
Error cudaDeviceCanAccessPeer(int* out, int device, int peer) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceCanAccessPeer").number("device", device).number("peer", peer);
  if (out == nullptr) return recorded(line, kInvalidValue);
  if (!is_device(device) || !is_device(peer)) return recorded(line, kInvalidDevice);
  *out = device != peer ? 1 : 0;
  return recorded(line);
}
Error cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceEnablePeerAccess").number("peer", peer);
  if (flags != 0) return recorded(line, kInvalidValue);
  return recorded(line, is_device(peer) && peer != thread_state().device ? kSuccess : kInvalidDevice);
}

Error cudaRuntimeGetVersion(int* out) {
  return version("cudaRuntimeGetVersion", out);
}
Error cudaDriverGetVersion(int* out) {
  return version("cudaDriverGetVersion", out);
}

/// Functions of the driver are none of the runtime, and not modelled.
Error cudaGetDriverEntryPoint(const char* symbol, void**, unsigned long long, int*) {
  end_of_driver("cudaGetDriverEntryPoint", symbol);
}
Error cudaGetDriverEntryPointByVersion(const char* symbol, void**, unsigned, unsigned long long, int*) {
  end_of_driver("cudaGetDriverEntryPointByVersion", symbol);
}

Error cudaGetLastError() {
  const Error last = thread_state().last_error;
  thread_state().last_error = kSuccess;
  return last;
}
Error cudaPeekAtLastError() {
  return thread_state().last_error;
}

const char* cudaGetErrorName(Error error) {
  for (const NamedError& each : kErrors)
    if (each.number == error) return each.name;
  return "unrecognized error code";
}
const char* cudaGetErrorString(Error error) {
  for (const NamedError& each : kErrors)
    if (each.number == error) return each.text;
  return "unrecognized error code";
}

Error cudaProfilerStart() {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaProfilerStart"));
}
Error cudaProfilerStop() {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaProfilerStop"));
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
