// Functions of CUDA 12 that CUDA 13 has otherwise, after the CUDA Runtime API reference of 12.5 and 12.9: those with
// _v2 and _v3 are what its header makes of the names without them, or lets programs choose.
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {

// A program asks for a runtime that is not older than what it was compiled with: the last one of CUDA 12.
const int kCudaMajor = 12, kCudaVersion = 12090;

extern "C" {

/// Declared here, as the functions of both versions; cudaEventElapsedTime_v2 is of 12.8 and on.
Error cudaEventElapsedTime(float* ms, void* from, void* to);

Error cudaGetDeviceProperties_v2(DeviceProperties12* out, int device) {
  return get_device_properties(out, device);
}
Error cudaPointerGetAttributes(PointerAttributes12* out, const void* pointer) {
  return get_pointer_attributes(out, pointer);
}
Error cudaEventElapsedTime_v2(float* ms, void* from, void* to) {
  return cudaEventElapsedTime(ms, from, to);
}

Error cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return get_capture_info("cudaStreamGetCaptureInfo", stream, status, id, false);
}
Error cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph, const void*** nodes,
                                  std::size_t* count) {
  return get_capture_info("cudaStreamGetCaptureInfo_v2", stream, status, id, graph || nodes || count);
}
Error cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph, const void*** nodes,
                                  const void** edges, std::size_t* count) {
  return get_capture_info("cudaStreamGetCaptureInfo_v3", stream, status, id, graph || nodes || edges || count);
}

/// The last argument is a device, or a place of the host.
Error cudaMemAdvise(const void* address, std::size_t bytes, int advice, int) {
  return advise(address, bytes, advice);
}
Error cudaMemAdvise_v2(const void* address, std::size_t bytes, int advice, MemoryLocation) {
  return advise(address, bytes, advice);
}

Error cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, std::size_t count) {
  return add_dependencies(graph, from, to, count);
}
Error cudaGraphAddDependencies_v2(void* graph, void* const* from, void* const* to, const void* edges,
                                  std::size_t count) {
  check_default_edges("cudaGraphAddDependencies_v2", edges, count);
  return add_dependencies(graph, from, to, count);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
