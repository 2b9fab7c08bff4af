#include "experiments/records/call.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::experiments::captured {

bool is_part_of_step(CallKind kind) {
  switch (kind) {
    case CallKind::other:
    case CallKind::create_stream:
    case CallKind::set_device:
    case CallKind::open_communicator:
    case CallKind::start_profiler:
    case CallKind::stop_profiler:
      return false;
    default:
      return true;
  }
}

bool is_work(CallKind kind) {
  switch (kind) {
    case CallKind::launch:
    case CallKind::product:
    case CallKind::library_kernel:
      return true;
    default:
      return is_communication(kind);
  }
}

bool is_communication(CallKind kind) {
  return kind == CallKind::collective || kind == CallKind::send || kind == CallKind::receive;
}

bool is_without_part(std::string_view function) {
  static constexpr std::array<std::string_view, 52> kNames{"cudaGraphUpload",
                                                           "cudaDeviceDisablePeerAccess",
                                                           "cudaDeviceReset",
                                                           "cudaInitDevice",
                                                           "cudaSetDeviceFlags",
                                                           "cudaDeviceSetLimit",
                                                           "cudaDeviceSetCacheConfig",
                                                           "cudaDeviceSetSharedMemConfig",
                                                           "cudaFuncSetCacheConfig",
                                                           "cudaFuncSetSharedMemConfig",
                                                           "cudaDeviceGetPCIBusId",
                                                           "cudaDeviceGetByPCIBusId",
                                                           "cudaHostGetDevicePointer",
                                                           "cudaGetSymbolAddress",
                                                           "cudaGetSymbolSize",
                                                           "ncclRedOpCreatePreMulSum",
                                                           "ncclRedOpDestroy",
                                                           "ncclCommRegister",
                                                           "ncclCommDeregister",
                                                           "cudaGraphDestroy",
                                                           "cudaGraphExecDestroy",
                                                           "cudaDeviceGetDefaultMemPool",
                                                           "cudaMemPoolSetAttribute",
                                                           "cudaMemPoolTrimTo",
                                                           "cudaGetDevice",
                                                           "cudaGetDeviceCount",
                                                           "cudaGetDeviceProperties",
                                                           "cudaDeviceGetAttribute",
                                                           "cudaDeviceCanAccessPeer",
                                                           "cudaDeviceEnablePeerAccess",
                                                           "cudaRuntimeGetVersion",
                                                           "cudaDriverGetVersion",
                                                           "cudaFuncSetAttribute",
                                                           "cudaPointerGetAttributes",
                                                           "cudaMemGetInfo",
                                                           "cudaDeviceGetStreamPriorityRange",
                                                           "cudaStreamGetFlags",
                                                           "cudaStreamGetPriority",
                                                           "cudaStreamIsCapturing",
                                                           "cudaStreamQuery",
                                                           "cudaStreamDestroy",
                                                           "cudaEventCreate",
                                                           "cudaEventCreateWithFlags",
                                                           "cudaEventQuery",
                                                           "cudaEventElapsedTime",
                                                           "cudaEventDestroy",
                                                           "ncclGetUniqueId",
                                                           "ncclCommDestroy",
                                                           "cudaMemAdvise",
                                                           "cudaStreamGetCaptureInfo",
                                                           "cudaGraphGetNodes",
                                                           "ncclCommAbort"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end();
}

bool is_library_kernel(std::string_view function) {
  static constexpr std::array<std::string_view, 21> kNames{"cudnnConvolutionForward",
                                                           "cudnnConvolutionBackwardData",
                                                           "cudnnConvolutionBackwardFilter",
                                                           "cudnnConvolutionBiasActivationForward",
                                                           "cudnnConvolutionBackwardBias",
                                                           "cudnnPoolingForward",
                                                           "cudnnPoolingBackward",
                                                           "cudnnActivationForward",
                                                           "cudnnActivationBackward",
                                                           "cudnnSoftmaxForward",
                                                           "cudnnSoftmaxBackward",
                                                           "cudnnAddTensor",
                                                           "cudnnOpTensor",
                                                           "cudnnReduceTensor",
                                                           "cudnnSetTensor",
                                                           "cudnnScaleTensor",
                                                           "cudnnBatchNormalizationForwardInference",
                                                           "cudnnBatchNormalizationForwardTraining",
                                                           "cudnnBatchNormalizationForwardTrainingEx",
                                                           "cudnnBatchNormalizationBackward",
                                                           "cudnnBatchNormalizationBackwardEx"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end();
}

std::int64_t element_bytes(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> kBytes{{{"int8", 1},
                                                                                     {"uint8", 1},
                                                                                     {"int32", 4},
                                                                                     {"uint32", 4},
                                                                                     {"int64", 8},
                                                                                     {"uint64", 8},
                                                                                     {"fp16", 2},
                                                                                     {"fp32", 4},
                                                                                     {"fp64", 8},
                                                                                     {"bf16", 2},
                                                                                     {"fp8", 1},
                                                                                     {"fp8_e5m2", 1}}};
  const auto known = std::find_if(kBytes.begin(), kBytes.end(), [&](const auto& one) { return one.first == type; });
  return known == kBytes.end() ? 0 : known->second;
}

std::uint32_t Words::operator()(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

}  // namespace manyworlds::experiments::captured
