// Compares the capture's own declarations with the installed header of CUDA 13, where there is one. It compiles or
// fails:
//   g++ -std=c++20 -I. -I/usr/local/cuda/include -fsyntax-only tests/capture/layouts.cpp
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <cstddef>
#include <string_view>

#include "experiments/capture/libraries/library_types.hpp"
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
static_assert(mine::kIllegalState == cudaErrorIllegalState &&
              mine::kNotForLegacyStream == cudaErrorStreamCaptureImplicit);
static_assert(int(mine::CopyKind::host_to_device) == cudaMemcpyHostToDevice &&
              int(mine::CopyKind::any) == cudaMemcpyDefault);
static_assert(int(mine::CopyKind::device_to_host) == cudaMemcpyDeviceToHost);
static_assert(int(mine::CopyKind::device_to_device) == cudaMemcpyDeviceToDevice);
static_assert(int(mine::MemoryKind::host) == cudaMemoryTypeHost &&
              int(mine::MemoryKind::managed) == cudaMemoryTypeManaged);
static_assert(int(mine::MemoryKind::device) == cudaMemoryTypeDevice);

static_assert(sizeof(mine::cublas::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
SAME(mine::cublas::Heuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME(mine::cublas::Heuristic, state, cublasLtMatmulHeuristicResult_t, state);
static_assert(mine::cublas::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA &&
              mine::cublas::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(mine::cublas::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(mine::cublas::kDefaultEpilogue == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(mine::cublas::kType == CUBLASLT_MATRIX_LAYOUT_TYPE &&
              mine::cublas::kOrder == CUBLASLT_MATRIX_LAYOUT_ORDER);
static_assert(mine::cublas::kRows == CUBLASLT_MATRIX_LAYOUT_ROWS &&
              mine::cublas::kColumns == CUBLASLT_MATRIX_LAYOUT_COLS);
static_assert(mine::cublas::kLeading == CUBLASLT_MATRIX_LAYOUT_LD);
static_assert(mine::cublas::kBatch == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(mine::cublas::kBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(mine::cublas::kOrderByColumns == CUBLASLT_ORDER_COL);
static_assert(mine::cublas::kInvalidArgument == CUBLAS_STATUS_INVALID_VALUE);

constexpr bool is_named(int number, const char* name) {
  for (const auto& each : mine::cublas::kDataTypes)
    if (each.number == number) return std::string_view(each.name) == name;
  return false;
}
static_assert(is_named(CUDA_R_32F, "fp32") && is_named(CUDA_R_64F, "fp64") && is_named(CUDA_R_16F, "fp16"));
static_assert(is_named(CUDA_R_8I, "int8") && is_named(CUDA_R_32I, "int32") && is_named(CUDA_R_16BF, "bf16"));
static_assert(is_named(CUDA_R_8F_E4M3, "fp8") && is_named(CUDA_R_8F_E5M2, "fp8_e5m2"));

#if __has_include(<nccl.h>)
constexpr bool is_type(int number, const char* name) {
  return std::string_view(mine::nccl::kDataTypes[number].name) == name;
}
constexpr bool is_reduction(int number, const char* name) {
  return std::string_view(mine::nccl::kReductions[number]) == name;
}
static_assert(sizeof(mine::nccl::UniqueId) == sizeof(ncclUniqueId) &&
              std::size(mine::nccl::kDataTypes) == ncclNumTypes);
static_assert(is_type(ncclInt8, "int8") && is_type(ncclUint8, "uint8") && is_type(ncclInt32, "int32"));
static_assert(is_type(ncclUint32, "uint32") && is_type(ncclInt64, "int64") && is_type(ncclUint64, "uint64"));
static_assert(is_type(ncclFloat16, "fp16") && is_type(ncclFloat32, "fp32") && is_type(ncclFloat64, "fp64"));
static_assert(is_type(ncclBfloat16, "bf16") && is_type(ncclFloat8e4m3, "fp8") && is_type(ncclFloat8e5m2, "fp8_e5m2"));
static_assert(is_reduction(ncclSum, "sum") && is_reduction(ncclProd, "prod") && is_reduction(ncclMax, "max"));
static_assert(is_reduction(ncclMin, "min") && is_reduction(ncclAvg, "avg"));
static_assert(mine::nccl::kInvalidArgument == ncclInvalidArgument && mine::nccl::kInvalidUsage == ncclInvalidUsage);
#endif

// Attributes of cudaDeviceGetAttribute are numbers in settings.cpp.
static_assert(cudaDevAttrMaxThreadsPerBlock == 1 && cudaDevAttrMaxBlockDimX == 2 && cudaDevAttrMaxGridDimX == 5);
static_assert(cudaDevAttrMaxSharedMemoryPerBlock == 8 && cudaDevAttrWarpSize == 10 &&
              cudaDevAttrMaxRegistersPerBlock == 12);
static_assert(cudaDevAttrMultiProcessorCount == 16 && cudaDevAttrL2CacheSize == 38 &&
              cudaDevAttrUnifiedAddressing == 41);
static_assert(cudaDevAttrMaxThreadsPerMultiProcessor == 39 && cudaDevAttrComputeCapabilityMajor == 75);
static_assert(cudaDevAttrComputeCapabilityMinor == 76 && cudaDevAttrMaxSharedMemoryPerMultiprocessor == 81);
static_assert(cudaDevAttrMaxRegistersPerMultiprocessor == 82 && cudaDevAttrManagedMemory == 83);
static_assert(cudaDevAttrCooperativeLaunch == 95 && cudaDevAttrMaxSharedMemoryPerBlockOptin == 97);
static_assert(cudaDevAttrMaxBlocksPerMultiprocessor == 106);
