// Compares the capture's own declarations with the installed header of CUDA, 12 or 13, where there is one. It compiles
// or fails:
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

static_assert(CUDART_VERSION >= 12000 && CUDART_VERSION < 14000, "the layouts are those of CUDA 12 and 13");
#if CUDART_VERSION < 13000
using Properties = mine::DeviceProperties12;
using Pointer = mine::PointerAttributes12;
SAME(Properties, clock_khz, cudaDeviceProp, clockRate);
SAME(Properties, device_overlap, cudaDeviceProp, deviceOverlap);
SAME(Properties, memory_clock_khz, cudaDeviceProp, memoryClockRate);
static_assert(sizeof(Pointer) == sizeof(cudaPointerAttributes));
#else
using Properties = mine::DeviceProperties13;
using Pointer = mine::PointerAttributes12;
static_assert(sizeof(mine::PointerAttributes13) == sizeof(cudaPointerAttributes));
#endif
static_assert(sizeof(Properties) == sizeof(cudaDeviceProp));
SAME(Properties, name, cudaDeviceProp, name);
SAME(Properties, total_memory_bytes, cudaDeviceProp, totalGlobalMem);
SAME(Properties, shared_per_block_bytes, cudaDeviceProp, sharedMemPerBlock);
SAME(Properties, registers_per_block, cudaDeviceProp, regsPerBlock);
SAME(Properties, warp_size, cudaDeviceProp, warpSize);
SAME(Properties, pitch_bytes, cudaDeviceProp, memPitch);
SAME(Properties, max_threads_per_block, cudaDeviceProp, maxThreadsPerBlock);
SAME(Properties, max_block, cudaDeviceProp, maxThreadsDim);
SAME(Properties, max_grid, cudaDeviceProp, maxGridSize);
SAME(Properties, constant_bytes, cudaDeviceProp, totalConstMem);
SAME(Properties, major, cudaDeviceProp, major);
SAME(Properties, minor, cudaDeviceProp, minor);
SAME(Properties, multiprocessors, cudaDeviceProp, multiProcessorCount);
SAME(Properties, concurrent_kernels, cudaDeviceProp, concurrentKernels);
SAME(Properties, ecc_enabled, cudaDeviceProp, ECCEnabled);
SAME(Properties, async_engines, cudaDeviceProp, asyncEngineCount);
SAME(Properties, unified_addressing, cudaDeviceProp, unifiedAddressing);
SAME(Properties, memory_bus_bits, cudaDeviceProp, memoryBusWidth);
SAME(Properties, l2_bytes, cudaDeviceProp, l2CacheSize);
SAME(Properties, max_threads_per_multiprocessor, cudaDeviceProp, maxThreadsPerMultiProcessor);
SAME(Properties, shared_per_multiprocessor_bytes, cudaDeviceProp, sharedMemPerMultiprocessor);
SAME(Properties, registers_per_multiprocessor, cudaDeviceProp, regsPerMultiprocessor);
SAME(Properties, managed_memory, cudaDeviceProp, managedMemory);
SAME(Properties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
SAME(Properties, shared_per_block_optin_bytes, cudaDeviceProp, sharedMemPerBlockOptin);
SAME(Properties, max_blocks_per_multiprocessor, cudaDeviceProp, maxBlocksPerMultiProcessor);
SAME(Properties, reserved_shared_per_block_bytes, cudaDeviceProp, reservedSharedMemPerBlock);
SAME(Properties, can_map_host_memory, cudaDeviceProp, canMapHostMemory);
SAME(Properties, stream_priorities, cudaDeviceProp, streamPrioritiesSupported);
SAME(Properties, globals_in_l1, cudaDeviceProp, globalL1CacheSupported);
SAME(Properties, locals_in_l1, cudaDeviceProp, localL1CacheSupported);
SAME(Properties, concurrent_managed_access, cudaDeviceProp, concurrentManagedAccess);
SAME(Properties, preemption, cudaDeviceProp, computePreemptionSupported);
SAME(Properties, host_pointers, cudaDeviceProp, canUseHostPointerForRegisteredMem);

static_assert(sizeof(mine::FunctionAttributes) == sizeof(cudaFuncAttributes));
SAME(mine::FunctionAttributes, static_shared_bytes, cudaFuncAttributes, sharedSizeBytes);
SAME(mine::FunctionAttributes, max_threads_per_block, cudaFuncAttributes, maxThreadsPerBlock);
SAME(mine::FunctionAttributes, registers, cudaFuncAttributes, numRegs);
SAME(mine::FunctionAttributes, ptx_version, cudaFuncAttributes, ptxVersion);
SAME(mine::FunctionAttributes, binary_version, cudaFuncAttributes, binaryVersion);
SAME(mine::FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME(mine::FunctionAttributes, preferred_carveout, cudaFuncAttributes, preferredShmemCarveout);
static_assert(mine::kMaxDynamicShared == cudaFuncAttributeMaxDynamicSharedMemorySize);

static_assert(sizeof(mine::KernelNode) == sizeof(cudaKernelNodeParams));
SAME(mine::KernelNode, function, cudaKernelNodeParams, func);
SAME(mine::KernelNode, grid, cudaKernelNodeParams, gridDim);
SAME(mine::KernelNode, block, cudaKernelNodeParams, blockDim);
SAME(mine::KernelNode, shared_bytes, cudaKernelNodeParams, sharedMemBytes);
SAME(mine::KernelNode, values, cudaKernelNodeParams, kernelParams);
SAME(mine::KernelNode, extra, cudaKernelNodeParams, extra);
static_assert(sizeof(mine::PitchedPlace) == sizeof(cudaPitchedPtr));
SAME(mine::PitchedPlace, pitch_bytes, cudaPitchedPtr, pitch);
SAME(mine::PitchedPlace, height, cudaPitchedPtr, ysize);
static_assert(sizeof(mine::CopyNode) == sizeof(cudaMemcpy3DParms));
SAME(mine::CopyNode, from_array, cudaMemcpy3DParms, srcArray);
SAME(mine::CopyNode, from_position, cudaMemcpy3DParms, srcPos);
SAME(mine::CopyNode, from, cudaMemcpy3DParms, srcPtr);
SAME(mine::CopyNode, to_array, cudaMemcpy3DParms, dstArray);
SAME(mine::CopyNode, to_position, cudaMemcpy3DParms, dstPos);
SAME(mine::CopyNode, to, cudaMemcpy3DParms, dstPtr);
SAME(mine::CopyNode, extent, cudaMemcpy3DParms, extent);
SAME(mine::CopyNode, kind, cudaMemcpy3DParms, kind);
static_assert(sizeof(mine::SetNode) == sizeof(cudaMemsetParams));
SAME(mine::SetNode, to, cudaMemsetParams, dst);
SAME(mine::SetNode, pitch_bytes, cudaMemsetParams, pitch);
SAME(mine::SetNode, value, cudaMemsetParams, value);
SAME(mine::SetNode, element_bytes, cudaMemsetParams, elementSize);
SAME(mine::SetNode, width, cudaMemsetParams, width);
SAME(mine::SetNode, height, cudaMemsetParams, height);
static_assert(sizeof(mine::HostNode) == sizeof(cudaHostNodeParams));
SAME(mine::HostNode, data, cudaHostNodeParams, userData);
static_assert(sizeof(mine::GraphUpdate) == sizeof(cudaGraphExecUpdateResultInfo));
SAME(mine::GraphUpdate, node, cudaGraphExecUpdateResultInfo, errorNode);
static_assert(mine::kUpdated == cudaGraphExecUpdateSuccess &&
              mine::kGraphUpdateFailed == cudaErrorGraphExecUpdateFailure);
static_assert(mine::kOtherTopology == cudaGraphExecUpdateErrorTopologyChanged);
static_assert(sizeof(mine::MemoryLocation) == sizeof(cudaMemLocation));
static_assert(sizeof(cudaGraphEdgeData) == 8);

static_assert(sizeof(mine::LaunchConfiguration) == sizeof(cudaLaunchConfig_t));
SAME(mine::LaunchConfiguration, grid, cudaLaunchConfig_t, gridDim);
SAME(mine::LaunchConfiguration, block, cudaLaunchConfig_t, blockDim);
SAME(mine::LaunchConfiguration, shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
SAME(mine::LaunchConfiguration, stream, cudaLaunchConfig_t, stream);
SAME(mine::LaunchConfiguration, attributes, cudaLaunchConfig_t, attrs);
SAME(mine::LaunchConfiguration, attribute_count, cudaLaunchConfig_t, numAttrs);

SAME(Pointer, kind, cudaPointerAttributes, type);
SAME(Pointer, device, cudaPointerAttributes, device);
SAME(Pointer, device_pointer, cudaPointerAttributes, devicePointer);
SAME(Pointer, host_pointer, cudaPointerAttributes, hostPointer);

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
static_assert(cudaDevAttrMaxBlocksPerMultiprocessor == 106 && cudaDevAttrReservedSharedMemoryPerBlock == 111);
