// What crosses the boundary of CUDA's runtime, in declarations of our own: values and layouts as the CUDA Runtime API
// reference documents them. tests/capture/layouts.cpp compares them with an installed header, where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace manyworlds::experiments::capture {

/// The major version of the runtime that is stood in for, 12 or 13, and what cudaRuntimeGetVersion says: each library
/// has its own (cuda12, cuda13), as it has the layouts and signatures that another version has otherwise.
extern const int kCudaMajor, kCudaVersion;

/// cudaError_t is an enumeration of the size of an int; these are the values that the capture returns.
using Error = int;
inline constexpr Error kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidConfiguration = 9, kInvalidPitch = 12,
                       kInvalidSymbol = 13, kInvalidDevicePointer = 17, kInvalidDevice = 101, kInvalidHandle = 400,
                       kIllegalState = 401, kNotForLegacyStream = 906, kGraphUpdateFailed = 910;

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

/// cudaMemLocation.
struct MemoryLocation {
  int kind, id;
};

/// cudaKernelNodeParams. `extra` is the other way to give arguments, which is not modelled.
struct KernelNode {
  void* function;
  Extent3 grid, block;
  unsigned shared_bytes;
  void** values;
  void** extra;
};

/// cudaMemcpy3DParms, as nodes of copies take it: positions and extents by x, y and z, the extent in bytes by x.
struct PitchedPlace {
  void* pointer;
  std::size_t pitch_bytes, width, height;
};
struct CopyNode {
  void* from_array;
  std::size_t from_position[3];
  PitchedPlace from;
  void* to_array;
  std::size_t to_position[3];
  PitchedPlace to;
  std::size_t extent[3];
  int kind;
};

/// cudaMemsetParams.
struct SetNode {
  void* to;
  std::size_t pitch_bytes;
  unsigned value, element_bytes;
  std::size_t width, height;
};

/// cudaGraphExecUpdateResultInfo: 0 is success, 2 a graph of another topology.
struct GraphUpdate {
  int result;
  void *node, *from_node;
};
inline constexpr int kUpdated = 0, kOtherTopology = 2;

/// cudaHostNodeParams.
struct HostNode {
  void (*function)(void*);
  void* data;
};

/// cudaMemcpyKind.
enum class CopyKind : int { host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3, any = 4 };

/// cudaMemoryType.
enum class MemoryKind : int { unregistered = 0, host = 1, device = 2, managed = 3 };

/// cudaPointerAttributes of CUDA 12; that of CUDA 13 has reserved members behind.
struct PointerAttributes12 {
  MemoryKind kind;
  int device;
  void* device_pointer;
  void* host_pointer;
};
static_assert(sizeof(PointerAttributes12) == 24);
struct PointerAttributes13 {
  PointerAttributes12 of_12;
  long reserved[8];
};
static_assert(sizeof(PointerAttributes13) == 88);

/// cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t static_shared_bytes, constant_bytes, local_bytes;
  int max_threads_per_block, registers, ptx_version, binary_version, caches_all;
  int max_dynamic_shared_bytes, preferred_carveout;
  int not_filled[22];
};
static_assert(sizeof(FunctionAttributes) == 144);

/// cudaFuncAttribute: how much dynamic shared memory a kernel may be launched with.
inline constexpr int kMaxDynamicShared = 8;

/// cudaDeviceProp of CUDA 12, as cudaGetDeviceProperties_v2 fills it in: the members that the capture fills in, each at
/// its offset; all others are zero.
struct DeviceProperties12 {
  char name[256];
  char uuid_and_luid[32];
  std::size_t total_memory_bytes;
  std::size_t shared_per_block_bytes;
  int registers_per_block, warp_size;
  std::size_t pitch_bytes;
  int max_threads_per_block, max_block[3], max_grid[3];
  int clock_khz;
  std::size_t constant_bytes;
  int major, minor;
  std::size_t texture_alignment[2];
  int device_overlap, multiprocessors;
  int time_is_limited, integrated, can_map_host_memory;
  int not_filled_1[41];
  std::size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci[3];
  int not_filled_2;
  int async_engines, unified_addressing, memory_clock_khz, memory_bus_bits, l2_bytes, persisting_l2_bytes;
  int max_threads_per_multiprocessor;
  int stream_priorities, globals_in_l1, locals_in_l1;
  std::size_t shared_per_multiprocessor_bytes;
  int registers_per_multiprocessor, managed_memory;
  int not_filled_3[5];
  int concurrent_managed_access, preemption, host_pointers;
  int cooperative_launch, not_filled_5;
  std::size_t shared_per_block_optin_bytes;
  int not_filled_6[2];
  int max_blocks_per_multiprocessor;
  int not_filled_7;
  std::size_t reserved_shared_per_block_bytes;
  int not_filled_8[76];
};
static_assert(sizeof(DeviceProperties12) == 1032);

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
  int integrated, can_map_host_memory;
  int not_filled_1[41];
  int concurrent_kernels, ecc_enabled, pci[3];
  int not_filled_2;
  int async_engines, unified_addressing, memory_bus_bits, l2_bytes, persisting_l2_bytes, max_threads_per_multiprocessor;
  int stream_priorities, globals_in_l1, locals_in_l1;
  int not_filled_3;
  std::size_t shared_per_multiprocessor_bytes;
  int registers_per_multiprocessor, managed_memory;
  int not_filled_4[4];
  int concurrent_managed_access, preemption, host_pointers;
  int cooperative_launch;
  std::size_t shared_per_block_optin_bytes;
  int not_filled_5[2];
  int max_blocks_per_multiprocessor;
  int not_filled_6;
  std::size_t reserved_shared_per_block_bytes;
  int not_filled_7[76];
};
static_assert(sizeof(DeviceProperties13) == 1008);

}  // namespace manyworlds::experiments::capture
