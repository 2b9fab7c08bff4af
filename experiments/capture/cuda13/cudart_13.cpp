// Functions of CUDA 13 that CUDA 12 has otherwise, after the CUDA Runtime API reference of 13.0.
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {

const int kCudaMajor = 13, kCudaVersion = 13000;

extern "C" {

Error cudaGetDeviceProperties(DeviceProperties13* out, int device) {
  return get_device_properties(out, device);
}
Error cudaPointerGetAttributes(PointerAttributes13* out, const void* pointer) {
  if (out != nullptr) *out = {};
  return get_pointer_attributes(out == nullptr ? nullptr : &out->of_12, pointer);
}

Error cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph, const void*** nodes,
                               const void** edges, std::size_t* count) {
  return get_capture_info("cudaStreamGetCaptureInfo", stream, status, id, graph || nodes || edges || count);
}

Error cudaMemAdvise(const void* address, std::size_t bytes, int advice, MemoryLocation) {
  return advise(address, bytes, advice);
}

Error cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, const void* edges, std::size_t count) {
  check_default_edges("cudaGraphAddDependencies", edges, count);
  return add_dependencies(graph, from, to, count);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
