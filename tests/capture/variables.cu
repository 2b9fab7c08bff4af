// Variables of device code, rows with gaps, and what programs call besides, for the tests of the capture.
#include <string.h>

#include "host_only.cuh"

#define __constant__ __attribute__((constant))

typedef struct ncclComm* ncclComm_t;
struct ncclUniqueId {
  char key[128];
};

extern "C" {
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind);
cudaError_t cudaGetSymbolAddress(void** out, const void* symbol);
cudaError_t cudaGetSymbolSize(size_t* out, const void* symbol);
cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, void (*function)(cudaStream_t, cudaError_t, void*), void* data,
                                  unsigned flags);
cudaError_t cudaHostGetDevicePointer(void** out, void* address, unsigned flags);
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned flags);
cudaError_t cudaDeviceGetPCIBusId(char* out, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int* out, const char* id);
cudaError_t cudaDeviceGetAttribute(int* out, int attribute, int device);
cudaError_t cudaDeviceSetLimit(int limit, size_t value);
cudaError_t cudaDeviceReset();
int ncclGetUniqueId(ncclUniqueId* out);
int ncclCommInitRank(ncclComm_t* out, int size, ncclUniqueId id, int rank);
int ncclRedOpCreatePreMulSum(int* out, void* scalar, int type, int where, ncclComm_t in);
int ncclRedOpDestroy(int reduction, ncclComm_t in);
int ncclMemAlloc(void** out, size_t bytes);
int ncclMemFree(void* address);
int ncclAllReduce(const void* from, void* to, size_t count, int type, int reduction, ncclComm_t in,
                  cudaStream_t stream);
}

__constant__ float taps[64];
__device__ int counter[1000];

__global__ void filter(float* of) {
  of[0] *= taps[0];
}

static void answer(cudaStream_t, cudaError_t error, void* to) {
  *static_cast<int*>(to) = 7 + error;
}

static int rows(cudaStream_t stream) {
  char host[3][100], *device;
  size_t pitch = 0;
  memset(host, 5, sizeof host);
  int errors = cudaMallocPitch((void**)&device, &pitch, 700, 30);
  if (errors != 0 || pitch < 700 || pitch % 512 != 0) return 1;
  errors +=
      cudaMemcpy2D(device, pitch, host, 100, 40, 3, cudaMemcpyHostToDevice) + cudaMemset2D(device, pitch, 1, 700, 30);
  errors += cudaMemcpy2DAsync(host, 100, device, pitch, 60, 3, cudaMemcpyDeviceToHost, stream);
  if (errors != 0 || host[2][59] != 0 || host[1][60] != 5 || host[0][0] != 0) return 2;
  // One row beyond the allocation, and rows that are wider than they lie apart.
  if (cudaMemset2D(device, pitch, 1, 700, 30 * 512) == cudaSuccess) return 3;
  if (static_cast<int>(cudaMemcpy2D(device, 16, host, 100, 40, 3, cudaMemcpyHostToDevice)) != 12) return 4;
  return cudaFree(device);
}

int main() {
  float weights[64] = {1};
  int first[2] = {1, 1}, called = 0, found = -1, scaled = 0;
  size_t bytes = 0;
  void *address, *pinned, *seen;
  char bus[32];
  cudaStream_t stream;
  ncclUniqueId id;
  ncclComm_t all;
  int errors = cudaStreamCreate(&stream) + cudaDeviceSetLimit(0, 1 << 16);
  errors += cudaMemcpyToSymbol(taps, weights, sizeof weights, 0, cudaMemcpyHostToDevice);
  errors += cudaMemcpyToSymbolAsync(taps, weights, 16, 240, cudaMemcpyHostToDevice, stream);
  errors += cudaMemcpyFromSymbol(first, counter, sizeof first, 8, cudaMemcpyDeviceToHost);
  if (errors != 0 || first[0] != 0 || first[1] != 0) return 10;
  if (static_cast<int>(cudaMemcpyToSymbol(taps, weights, 16, 241, cudaMemcpyHostToDevice)) != 1) return 11;
  if (static_cast<int>(cudaMemcpyToSymbol(weights, weights, 16, 0, cudaMemcpyHostToDevice)) != 13) return 12;
  if (cudaGetSymbolSize(&bytes, counter) != cudaSuccess || bytes != 4000) return 13;
  if (cudaGetSymbolAddress(&address, counter) != cudaSuccess) return 14;
  filter<<<1, 32, 0, stream>>>(static_cast<float*>(address));
  if (const int failed = rows(stream)) return 20 + failed;
  errors = cudaHostAlloc(&pinned, 64, 2) + cudaHostGetDevicePointer(&seen, pinned, 0);
  if (errors != 0 || seen != pinned) return 30;
  errors = cudaStreamAddCallback(stream, answer, &called, 0) + cudaDeviceGetPCIBusId(bus, sizeof bus, 0);
  if (errors != 0 || called != 7 || cudaDeviceGetByPCIBusId(&found, bus) != cudaSuccess || found != 0) return 31;
  // The clock of an A100 in kHz (1.41 GHz), maps memory of the host, the compute mode, pools, clusters of blocks.
  const int asked[5] = {13, 19, 20, 115, 120}, expected[5] = {1410000, 1, 0, 1, 0};
  for (int i = 0; i < 5; ++i)
    if (cudaDeviceGetAttribute(&found, asked[i], 0) != cudaSuccess || found != expected[i]) return 32;
  errors = ncclGetUniqueId(&id) + ncclCommInitRank(&all, 2, id, 0) + ncclMemAlloc(&address, 4096);
  errors += ncclRedOpCreatePreMulSum(&scaled, weights, 7, 0, all) +
            ncclAllReduce(address, address, 1024, 7, scaled, all, stream);
  errors += ncclRedOpDestroy(scaled, all);
  if (errors != 0 || ncclAllReduce(address, address, 1024, 7, scaled, all, stream) == 0) return 40;
  return ncclMemFree(address) + cudaDeviceReset();
}
