// A program of what CUDA 12 and 13 have otherwise, for the tests of the capture: compiled with CUDA_MAJOR, and declarations
// as the header of that version has them (CUDA Runtime API reference, 12.5 and 13.0). It prints what it is told of the
// device; each structure stands before bytes that nothing may write.
#include "host_only.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUDA_MAJOR == 12
struct Properties {
  char name[256], unread_1[132];
  int multiprocessors;  // at 388
  char unread_2[304];
  size_t shared_per_block_optin;  // at 696
  char unread_3[328];
};
static_assert(sizeof(Properties) == 1032 && offsetof(Properties, shared_per_block_optin) == 696, "as of CUDA 12");
struct Pointer {
  int kind, device;
  void *of_device, *of_host;
};
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#else
struct Properties {
  char name[256], unread_1[128];
  int multiprocessors;  // at 384
  char unread_2[284];
  size_t shared_per_block_optin;  // at 672
  char unread_3[328];
};
static_assert(sizeof(Properties) == 1008 && offsetof(Properties, shared_per_block_optin) == 672, "as of CUDA 13");
struct Pointer {
  int kind, device;
  void *of_device, *of_host;
  long reserved[8];
};
#endif
struct Location {
  int kind, id;
};
static const Location kDevice = {1, 0};

extern "C" {
cudaError_t cudaRuntimeGetVersion(int* out);
cudaError_t cudaGetDeviceProperties(Properties* out, int device);
cudaError_t cudaPointerGetAttributes(Pointer* out, const void* pointer);
cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned flags);
cudaError_t cudaGraphAddEmptyNode(void** out, cudaGraph_t graph, void* const* after, size_t count);
int cublasGetVersion_v2(void* handle, int* out);
#if CUDA_MAJOR == 12
cudaError_t cudaEventElapsedTime_v2(float* ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaMemAdvise(const void* address, size_t bytes, int advice, int device);
cudaError_t cudaMemAdvise_v2(const void* address, size_t bytes, int advice, Location location);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, int* status, unsigned long long* id, cudaGraph_t* graph = 0,
                                        const void*** nodes = 0, size_t* count = 0);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to, size_t count);
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, void* const* from, void* const* to, const void* edges,
                                        size_t count);
#else
cudaError_t cudaMemAdvise(const void* address, size_t bytes, int advice, Location location);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, int* status, unsigned long long* id, cudaGraph_t* graph = 0,
                                     const void*** nodes = 0, const void** edges = 0, size_t* count = 0);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, void* const* from, void* const* to, const void* edges,
                                     size_t count);
#endif
}

static void check(int error, const char* what) {
  if (error == 0) return;
  printf("%s: %s\n", what, cudaGetErrorString((cudaError_t)error));
  exit(1);
}

template <class T>
struct Guarded {
  T of;
  char behind[64];
  Guarded() { memset(this, 7, sizeof *this); }
  bool is_whole() const {
    for (char each : behind)
      if (each != 7) return false;
    return true;
  }
};

static cudaError_t capture_info(cudaStream_t stream, int* status, unsigned long long* id, cudaGraph_t* graph) {
#if CUDA_MAJOR == 12
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph);
#else
  return cudaStreamGetCaptureInfo(stream, status, id, graph);
#endif
}

int main(int count, char** arguments) {
  const char* refused = count > 1 ? arguments[1] : "";
  int version = 0, of_cublas = 0;
  check(cudaRuntimeGetVersion(&version), "version");
  check(cublasGetVersion_v2(0, &of_cublas), "version of cuBLAS");
  Guarded<Properties> properties;
  check(cudaGetDeviceProperties(&properties.of, 0), "properties");
  printf("%d %d %s %d %zu\n", version, of_cublas, properties.of.name, properties.of.multiprocessors,
         properties.of.shared_per_block_optin);
  char *device, *managed;
  check(cudaMalloc((void**)&device, 4096), "device memory");
  check(cudaMallocManaged((void**)&managed, 4096, 1), "managed memory");
  Guarded<Pointer> pointer;
  check(cudaPointerGetAttributes(&pointer.of, device + 8), "pointer");
  if (!properties.is_whole() || !pointer.is_whole()) return 3;
  if (pointer.of.kind != 2 || pointer.of.of_device != device + 8 || pointer.of.of_host != 0) return 4;

  cudaStream_t stream;
  cudaEvent_t from, to;
  float ms = 0;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaEventCreate(&from), "event");
  check(cudaEventCreate(&to), "event");
  check(cudaEventRecord(from, stream), "record");
  check(cudaEventRecord(to, stream), "record");
  check(cudaEventElapsedTime(&ms, from, to), "elapsed");
  if (ms != 1) return 5;

  int status[2];
  unsigned long long id = 0;
  cudaGraph_t captured, made;
  check(capture_info(stream, &status[0], &id, 0), "status");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin");
  check(capture_info(stream, &status[1], &id, strcmp(refused, "nodes") == 0 ? &captured : 0), "status");
  check(cudaStreamEndCapture(stream, &captured), "end");
  if (status[0] != 0 || status[1] != 1 || id == 0) return 6;

  void* nodes[2];
  const unsigned char edges[2][8] = {{0, 0, strcmp(refused, "edges") == 0}, {}};
  check(cudaGraphCreate(&made, 0), "graph");
  for (void*& node : nodes) check(cudaGraphAddEmptyNode(&node, made, 0, 0), "node");
#if CUDA_MAJOR == 12
  check(cudaEventElapsedTime_v2(&ms, from, to), "elapsed");
  check(cudaMemAdvise(managed, 4096, 3, 0), "advice");
  check(cudaMemAdvise_v2(managed, 4096, 3, kDevice), "advice");
  check(cudaGraphAddDependencies(made, &nodes[0], &nodes[1], 1), "dependencies");
  check(cudaGraphAddDependencies_v2(made, &nodes[0], &nodes[1], edges, 1), "dependencies");
  return cudaMemAdvise(device, 4096, 3, 0) == cudaSuccess;  // which is not managed
#else
  check(cudaMemAdvise(managed, 4096, 3, kDevice), "advice");
  check(cudaGraphAddDependencies(made, &nodes[0], &nodes[1], edges, 1), "dependencies");
  return cudaMemAdvise(device, 4096, 3, kDevice) == cudaSuccess;
#endif
}
