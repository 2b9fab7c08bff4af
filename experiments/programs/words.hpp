// The words of the file of stream programs, for its reader and its writer.
#pragma once

#include <array>
#include <cstdint>

namespace manyworlds::experiments::programs {

inline constexpr const char* kHeader = "manyworlds_program";
inline constexpr std::int64_t kVersion = 1;
/// In the order of core::workload::DimensionKind.
inline constexpr std::array<const char*, 3> kDimensionKinds{"groups", "pairs", "slowing_pairs"};
/// In the order of CopyDirection.
inline constexpr std::array<const char*, 5> kDirections{"host_to_device", "device_to_host", "device_to_device", "peer",
                                                        "set"};

/// In the order of ScalesWith: the bandwidth of the memory, and the rate of matrix products.
inline constexpr std::array<const char*, 2> kScalesWith{"memory", "matrix"};

}  // namespace manyworlds::experiments::programs
