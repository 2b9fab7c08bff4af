// What crosses the boundary of CUDA's runtime, in declarations of our own: values and layouts as the CUDA Runtime API
// reference documents them. tests/capture/layouts.cpp compares them with an installed header, where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manyworlds::experiments::capture {

/// The major version of the runtime that is stood in for: layouts and versions of functions are its own.
inline constexpr int kCudaMajor = 13;

/// cudaError_t is an enumeration of the size of an int; these are the values that the capture returns.
using Error = int;
inline constexpr Error kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidConfiguration = 9,
                       kInvalidDevicePointer = 17, kInvalidDevice = 101, kInvalidHandle = 400, kIllegalState = 401,
                       kNotForLegacyStream = 906;

struct Extent3 {  // dim3
  unsigned x, y, z;
};

/// cudaLaunchConfig_t, as cudaLaunchKernelExC takes it. Attributes are opaque: their number is recorded.
struct LaunchConfiguration {
  Extent3 grid, block;
  std::size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

/// cudaMemcpyKind.
enum class CopyKind : int { host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3, any = 4 };

/// cudaMemoryType.
enum class MemoryKind : int { unregistered = 0, host = 1, device = 2, managed = 3 };

/// cudaPointerAttributes of CUDA 13: 88 bytes, of which the last are reserved.
struct PointerAttributes {
  MemoryKind kind;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

/// cudaDeviceProp of CUDA 13: the members that the capture fills in, each at its offset; all others are zero.
struct DeviceProperties13 {
  char name[256];
  char uuid_and_luid[32];
  std::size_t total_memory_bytes;
  std::size_t shared_per_block_bytes;
  int registers_per_block, warp_size;
  std::size_t pitch_bytes;
  int max_threads_per_block, max_block[3], max_grid[3];
  std::size_t constant_bytes;
  int major, minor;
  std::size_t texture_alignment[2];
  int multiprocessors;
  int not_filled_1[43];
  int concurrent_kernels, ecc_enabled, pci[3];
  int not_filled_2;
  int async_engines, unified_addressing, memory_bus_bits, l2_bytes, persisting_l2_bytes, max_threads_per_multiprocessor;
  int not_filled_3[4];
  std::size_t shared_per_multiprocessor_bytes;
  int registers_per_multiprocessor, managed_memory;
  int not_filled_4[7];
  int cooperative_launch;
  std::size_t shared_per_block_optin_bytes;
  int not_filled_5[2];
  int max_blocks_per_multiprocessor;
  int not_filled_6[79];
};
static_assert(sizeof(DeviceProperties13) == 1008);

}  // namespace manyworlds::experiments::capture
