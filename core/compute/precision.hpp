// Number formats of the layers' matrix multiplications, and their names in all options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::core::compute {

/// fp8 has one scale per tensor; mxfp8 and nvfp4 have one scale per block of 32 and of 16 numbers, which the matrix
/// units apply themselves.
enum class Precision : std::uint8_t { bf16, fp16, fp8, mxfp8, nvfp4 };

/// Returns the names, in the order of Precision.
inline const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names{"bf16", "fp16", "fp8", "mxfp8", "nvfp4"};
  return names;
}

/// Returns the bit of a format in a set of formats.
constexpr std::uint32_t bit_of(Precision precision) {
  return std::uint32_t{1} << static_cast<std::uint32_t>(precision);
}

}  // namespace manyworlds::core::compute
