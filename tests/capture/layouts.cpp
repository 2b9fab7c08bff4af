// Compares the capture's own declarations with the installed header of CUDA 13, where there is one. It compiles or
// fails:
//   g++ -std=c++20 -I. -I/usr/local/cuda/include -fsyntax-only tests/capture/layouts.cpp
#include <cuda_runtime_api.h>

#include <cstddef>

#include "experiments/capture/runtime_types.hpp"

namespace mine = manyworlds::experiments::capture;

#define SAME(ours, member, theirs, their_member)                           \
  static_assert(offsetof(ours, member) == offsetof(theirs, their_member)); \
  static_assert(sizeof(ours::member) == sizeof(theirs::their_member))

static_assert(CUDART_VERSION >= 13000 && CUDART_VERSION < 14000, "the layouts are those of CUDA 13");
static_assert(sizeof(mine::DeviceProperties13) == sizeof(cudaDeviceProp));
SAME(mine::DeviceProperties13, name, cudaDeviceProp, name);
SAME(mine::DeviceProperties13, total_memory_bytes, cudaDeviceProp, totalGlobalMem);
SAME(mine::DeviceProperties13, shared_per_block_bytes, cudaDeviceProp, sharedMemPerBlock);
SAME(mine::DeviceProperties13, registers_per_block, cudaDeviceProp, regsPerBlock);
SAME(mine::DeviceProperties13, warp_size, cudaDeviceProp, warpSize);
SAME(mine::DeviceProperties13, pitch_bytes, cudaDeviceProp, memPitch);
SAME(mine::DeviceProperties13, max_threads_per_block, cudaDeviceProp, maxThreadsPerBlock);
SAME(mine::DeviceProperties13, max_block, cudaDeviceProp, maxThreadsDim);
SAME(mine::DeviceProperties13, max_grid, cudaDeviceProp, maxGridSize);
SAME(mine::DeviceProperties13, constant_bytes, cudaDeviceProp, totalConstMem);
SAME(mine::DeviceProperties13, major, cudaDeviceProp, major);
SAME(mine::DeviceProperties13, minor, cudaDeviceProp, minor);
SAME(mine::DeviceProperties13, multiprocessors, cudaDeviceProp, multiProcessorCount);
SAME(mine::DeviceProperties13, concurrent_kernels, cudaDeviceProp, concurrentKernels);
SAME(mine::DeviceProperties13, ecc_enabled, cudaDeviceProp, ECCEnabled);
SAME(mine::DeviceProperties13, async_engines, cudaDeviceProp, asyncEngineCount);
SAME(mine::DeviceProperties13, unified_addressing, cudaDeviceProp, unifiedAddressing);
SAME(mine::DeviceProperties13, memory_bus_bits, cudaDeviceProp, memoryBusWidth);
SAME(mine::DeviceProperties13, l2_bytes, cudaDeviceProp, l2CacheSize);
SAME(mine::DeviceProperties13, max_threads_per_multiprocessor, cudaDeviceProp, maxThreadsPerMultiProcessor);
SAME(mine::DeviceProperties13, shared_per_multiprocessor_bytes, cudaDeviceProp, sharedMemPerMultiprocessor);
SAME(mine::DeviceProperties13, registers_per_multiprocessor, cudaDeviceProp, regsPerMultiprocessor);
SAME(mine::DeviceProperties13, managed_memory, cudaDeviceProp, managedMemory);
SAME(mine::DeviceProperties13, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
SAME(mine::DeviceProperties13, shared_per_block_optin_bytes, cudaDeviceProp, sharedMemPerBlockOptin);
SAME(mine::DeviceProperties13, max_blocks_per_multiprocessor, cudaDeviceProp, maxBlocksPerMultiProcessor);

static_assert(sizeof(mine::LaunchConfiguration) == sizeof(cudaLaunchConfig_t));
SAME(mine::LaunchConfiguration, grid, cudaLaunchConfig_t, gridDim);
SAME(mine::LaunchConfiguration, block, cudaLaunchConfig_t, blockDim);
SAME(mine::LaunchConfiguration, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
SAME(mine::LaunchConfiguration, stream, cudaLaunchConfig_t, stream);
SAME(mine::LaunchConfiguration, attributes, cudaLaunchConfig_t, attrs);
SAME(mine::LaunchConfiguration, attribute_count, cudaLaunchConfig_t, numAttrs);

static_assert(sizeof(mine::PointerAttributes) == sizeof(cudaPointerAttributes));
SAME(mine::PointerAttributes, kind, cudaPointerAttributes, type);
SAME(mine::PointerAttributes, device, cudaPointerAttributes, device);
SAME(mine::PointerAttributes, device_pointer, cudaPointerAttributes, devicePointer);
SAME(mine::PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);

static_assert(mine::kInvalidValue == cudaErrorInvalidValue && mine::kOutOfMemory == cudaErrorMemoryAllocation);
static_assert(mine::kInvalidConfiguration == cudaErrorInvalidConfiguration);
static_assert(mine::kInvalidDevicePointer == cudaErrorInvalidDevicePointer);
static_assert(mine::kInvalidDevice == cudaErrorInvalidDevice && mine::kInvalidHandle == cudaErrorInvalidResourceHandle);
static_assert(int(mine::CopyKind::host_to_device) == cudaMemcpyHostToDevice &&
              int(mine::CopyKind::any) == cudaMemcpyDefault);
static_assert(int(mine::CopyKind::device_to_host) == cudaMemcpyDeviceToHost);
static_assert(int(mine::CopyKind::device_to_device) == cudaMemcpyDeviceToDevice);
static_assert(int(mine::MemoryKind::host) == cudaMemoryTypeHost &&
              int(mine::MemoryKind::managed) == cudaMemoryTypeManaged);
static_assert(int(mine::MemoryKind::device) == cudaMemoryTypeDevice);
