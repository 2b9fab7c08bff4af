// A program of two streams, for the tests of the capture: a copy, a kernel, and a kernel of another stream that waits for
// it. Arguments: how many MiB it allocates at the end; and what it does besides (pool, captured) or that the capture has to
// refuse (graph, driver, touch, grid, unregistered).
#ifndef TWO_STREAMS_WITH_TOOLKIT
#include "host_only.cuh"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__global__ void scale(float* data, float by, int count) {}
template <typename T>
__global__ void add(const T* from, T* to, unsigned long count, bool twice) {}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

int main(int count, char** arguments) {
  const size_t kBytes = 4096;
  float *a, *b, host[1024];
  for (float& each : host) each = 7;
  cudaStream_t compute, other;
  cudaEvent_t scaled;
  check(cudaSetDevice(0), "set device");
  check(cudaMalloc((void**)&a, kBytes), "a");
  check(cudaMalloc((void**)&b, 2 * kBytes), "b");
  check(cudaStreamCreate(&compute), "stream");
  check(cudaStreamCreate(&other), "stream");
  check(cudaEventCreate(&scaled), "event");
  check(cudaMemcpyAsync(a, host, kBytes, cudaMemcpyHostToDevice, compute), "copy in");
  check(cudaMemsetAsync(b, 0, 2 * kBytes, other), "set");
  scale<<<dim3(8), dim3(128), 0, compute>>>(a, 0.5f, 1024);
  check(cudaEventRecord(scaled, compute), "record");
  check(cudaStreamWaitEvent(other, scaled, 0), "wait");
  add<float><<<dim3(2, 3, 4), dim3(32, 4), 1024, other>>>(a, b + 16, 1024, true);
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(host, b, kBytes, cudaMemcpyDeviceToHost), "copy out");
  check(cudaDeviceSynchronize(), "synchronise");
  for (float each : host)
    if (each != 0) return 3;  // what no device computed reads as zeros
  const char* refused = count > 2 ? arguments[2] : "";
  if (strcmp(refused, "graph") == 0) {
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    cudaGraphClone(&graph, graph);
  }
#ifndef TWO_STREAMS_WITH_TOOLKIT
  void* function;
  if (strcmp(refused, "driver") == 0) cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, 0, 0);
#endif
  if (strcmp(refused, "captured") == 0) {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    enum cudaStreamCaptureStatus status[2];
    check(cudaStreamBeginCapture(compute, (enum cudaStreamCaptureMode)0), "begin");
    scale<<<dim3(8), dim3(128), 0, compute>>>(a, 0.5f, 1024);
    check(cudaEventRecord(scaled, compute), "record");
    check(cudaStreamWaitEvent(other, scaled, 0), "wait");
    check(cudaStreamIsCapturing(other, &status[0]), "is capturing");
    check(cudaStreamEndCapture(compute, &graph), "end");
    check(cudaStreamIsCapturing(other, &status[1]), "is capturing");
    const bool was_captured = status[0] == cudaStreamCaptureStatusActive && status[1] == cudaStreamCaptureStatusNone;
    if (!was_captured || cudaStreamEndCapture(compute, &graph) == cudaSuccess) return 5;
    check(cudaGraphInstantiate(&instance, graph, 0), "instantiate");
    for (int i = 0; i < 2; ++i) check(cudaGraphLaunch(instance, compute), "launch of a graph");
    check(cudaGraphExecDestroy(instance), "destroy");
    check(cudaGraphDestroy(graph), "destroy");
  }
  if (strcmp(refused, "pool") == 0) {
    float* of_pool;
    cudaMemPool_t pool;
    check(cudaDeviceGetDefaultMemPool(&pool, 0), "pool");
    check(cudaMallocAsync((void**)&of_pool, 1 << 20, other), "of the pool");
    check(cudaFreeAsync(of_pool, other), "of the pool");
  }
  if (strcmp(refused, "touch") == 0) *a = 1;
  if (strcmp(refused, "grid") == 0) {
    scale<<<dim3(1), dim3(2048), 0, compute>>>(a, 0.5f, 1024);
    check(cudaGetLastError(), "a launch of 2048 threads");
  }
  if (strcmp(refused, "unregistered") == 0) cudaLaunchKernel((const void*)&check, dim3(1), dim3(1), 0, 0, compute);
  void* large = 0;
  const size_t mib = count > 1 ? strtoul(arguments[1], 0, 10) : 1;
  check(cudaMalloc(&large, mib << 20), "large");
  check(cudaFree(large), "free");
  check(cudaFree(b), "free");
  check(cudaStreamDestroy(other), "destroy");
  printf("done\n");
  return 0;
}
