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
    {kInvalidPitch, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {kInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
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

/// What tunes a device and changes nothing of what a record has.
Error tuned(const char* call) {
  const std::lock_guard lock(session().mutex);
  return recorded(Line(call));
}

/// How devices of the host are told apart: the capture's have bus 1 and on.
std::string bus_id(int device) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", device + 1);
  return text;
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

Error cudaDeviceDisablePeerAccess(int peer) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceDisablePeerAccess").number("peer", peer);
  return recorded(line, is_device(peer) && peer != thread_state().device ? kSuccess : kInvalidDevice);
}

/// Programs call it at their end. What was allocated, and streams and events, go with the process.
Error cudaDeviceReset() {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaDeviceReset").number("device", thread_state().device));
}
Error cudaInitDevice(int device, unsigned, unsigned) {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaInitDevice").number("device", device), is_device(device) ? kSuccess : kInvalidDevice);
}
Error cudaSetDeviceFlags(unsigned) {
  return tuned("cudaSetDeviceFlags");
}
Error cudaDeviceSetLimit(int, std::size_t) {
  return tuned("cudaDeviceSetLimit");
}
Error cudaDeviceSetCacheConfig(int) {
  return tuned("cudaDeviceSetCacheConfig");
}
Error cudaDeviceSetSharedMemConfig(int) {
  return tuned("cudaDeviceSetSharedMemConfig");
}
Error cudaFuncSetCacheConfig(const void*, int) {
  return tuned("cudaFuncSetCacheConfig");
}
Error cudaFuncSetSharedMemConfig(const void*, int) {
  return tuned("cudaFuncSetSharedMemConfig");
}

Error cudaDeviceGetPCIBusId(char* out, int bytes, int device) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceGetPCIBusId").number("device", device);
  if (!is_device(device)) return recorded(line, kInvalidDevice);
  const std::string id = bus_id(device);
  if (out == nullptr || bytes <= static_cast<int>(id.size())) return recorded(line, kInvalidValue);
  std::memcpy(out, id.c_str(), id.size() + 1);
  return recorded(line);
}
Error cudaDeviceGetByPCIBusId(int* out, const char* id) {
  const std::lock_guard lock(session().mutex);
  const Line line("cudaDeviceGetByPCIBusId");
  if (out == nullptr || id == nullptr) return recorded(line, kInvalidValue);
  for (int device = 0; device < session().settings.devices; ++device)
    if (bus_id(device) == id) return *out = device, recorded(line);
  return recorded(line, kInvalidDevice);
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
