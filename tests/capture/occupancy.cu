// A program that asks how many blocks fit on a multiprocessor and fills the device with as many, as persistent kernels do,
// for the tests of the capture. It prints the answers, one a line: threads, dynamic shared memory, blocks. Argument: what
// the capture has to refuse (unregistered), or the program asks for wrongly (large).
#include "host_only.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Attributes {
  size_t static_shared_bytes, constant_bytes, local_bytes;
  int max_threads_per_block, registers, ptx_version, binary_version, caches_all;
  int max_dynamic_shared_bytes, preferred_carveout, unread[22];
};
static_assert(sizeof(Attributes) == 144, "as of CUDA");

extern "C" {
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void* kernel, int threads, size_t shared_bytes);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void* kernel, int threads,
                                                                   size_t shared_bytes, unsigned flags);
cudaError_t cudaFuncGetAttributes(Attributes* out, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, int attribute, int value);
cudaError_t cudaDeviceGetAttribute(int* out, int attribute, int device);
}

__global__ void persistent(float* data, int count) {}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static int asked(int threads, size_t shared_bytes) {
  int blocks = -1, again = -1;
  const void* kernel = (const void*)persistent;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes), "occupancy");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&again, kernel, threads, shared_bytes, 0), "occupancy");
  if (blocks != again) exit(3);
  printf("%d %zu %d\n", threads, shared_bytes, blocks);
  return blocks;
}

int main(int count, char** arguments) {
  const char* refused = count > 1 ? arguments[1] : "";
  const int kMaxDynamicShared = 8, kMultiprocessors = 16;
  int multiprocessors = 0, blocks = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, kMultiprocessors, 0), "multiprocessors");
  Attributes attributes;
  check(cudaFuncGetAttributes(&attributes, (const void*)persistent), "attributes");
  printf("%d threads, %d bytes\n", attributes.max_threads_per_block, attributes.max_dynamic_shared_bytes);
  blocks = asked(256, 0);
  asked(64, 0), asked(1000, 0), asked(1025, 0), asked(256, 40 << 10), asked(256, 100 << 10);
  if (strcmp(refused, "unregistered") == 0) cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void*)check, 1, 0);
  if (strcmp(refused, "large") == 0) {
    persistent<<<dim3(1), dim3(1), 100 << 10>>>(0, 1);
    check(cudaGetLastError(), "a launch with 100 KiB");
  }
  check(cudaFuncSetAttribute((const void*)persistent, kMaxDynamicShared, 100 << 10), "100 KiB");
  if (cudaFuncSetAttribute((const void*)persistent, kMaxDynamicShared, 1 << 20) == cudaSuccess) return 4;
  if (cudaGetLastError() == cudaSuccess) return 5;  // that of the line above
  asked(256, 100 << 10);
  persistent<<<dim3(blocks * multiprocessors), dim3(256)>>>(0, 1);
  persistent<<<dim3(1), dim3(1), 100 << 10>>>(0, 1);
  check(cudaGetLastError(), "launch");
  return 0;
}
