// cudaDataType_t, by its value, as the cuBLAS documentation lists it.
#pragma once

#include <string>

namespace manyworlds::experiments::capture {

/// The name that program files use, or `type <number>` for one that they have no name for.
inline std::string data_type(int type) {
  switch (type) {
    case 0:
      return "fp32";
    case 1:
      return "fp64";
    case 2:
      return "fp16";
    case 3:
      return "int8";
    case 10:
      return "int32";
    case 14:
      return "bf16";
    case 28:
      return "fp8";
    case 29:
      return "fp8_e5m2";
    default:
      return "type " + std::to_string(type);
  }
}

}  // namespace manyworlds::experiments::capture
