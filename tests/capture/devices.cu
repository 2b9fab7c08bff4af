// A program of two devices and of functions of the host, for the tests of the capture.
#include "host_only.cuh"

extern "C" {
cudaError_t cudaDeviceCanAccessPeer(int* out, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes, cudaStream_t);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* out);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* out);
cudaError_t cudaGetDeviceCount(int* out);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
}

static void add_one(void* to) { ++*static_cast<int*>(to); }

int main() {
  int devices = 0, reaches = 0, calls = 0, priority = 0;
  unsigned flags = 0;
  size_t free_bytes = 0, total_bytes = 0;
  char *first, *second;
  cudaStream_t stream;
  int errors = cudaGetDeviceCount(&devices) + cudaDeviceCanAccessPeer(&reaches, 0, 1);
  if (errors != 0 || devices != 2 || reaches != 1) return 1;
  errors += cudaMalloc((void**)&first, 4 << 20) + cudaDeviceEnablePeerAccess(1, 0) + cudaSetDevice(1);
  errors += cudaMalloc((void**)&second, 2 << 20) + cudaMemGetInfo(&free_bytes, &total_bytes);
  if (errors != 0 || total_bytes - free_bytes != 2 << 20) return 2;  // each device has a memory of its own
  errors += cudaStreamCreateWithPriority(&stream, 1, -3) + cudaStreamGetPriority(stream, &priority);
  errors += cudaStreamGetFlags(stream, &flags) + cudaMemcpyPeerAsync(second, 1, first + 1024, 0, 2 << 20, stream);
  if (errors != 0 || priority != -3 || flags != 1) return 3;
  errors += cudaLaunchHostFunc(stream, add_one, &calls);
  if (errors != 0 || calls != 1) return 4;
  return cudaSetDevice(2) == cudaSuccess || cudaMemcpyPeerAsync(second, 1, first, 0, 4 << 20, stream) == cudaSuccess ? 5 : 0;
}
