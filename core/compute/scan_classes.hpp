// Which classes of kernels are those of scans by chunks.
#pragma once

#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// Whether kernels of the class are those of a scan, which have bytes, FLOPs and in m the chunks that wait for each
/// other, but no other size: see chunked_scan().
inline bool is_scan(KernelClass kernel_class) {
  return kernel_class == KernelClass::state_space || kernel_class == KernelClass::delta_rule;
}

}  // namespace manyworlds::core::compute
