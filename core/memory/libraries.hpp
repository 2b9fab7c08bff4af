// Device memory that libraries allocate: workspaces of matrix multiplications, communicator buffers, and the driver
// context.
#pragma once

#include <cstdint>

#include "core/compute/gpu.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

struct LibraryBytes {
  std::int64_t workspaces = 0;     // from the framework's allocator
  std::int64_t communicators = 0;  // outside the framework's allocator, as is the context
  std::int64_t context = 0;
};

/// Returns the library memory of one rank, in bytes; it is the same on all ranks.
LibraryBytes library_bytes(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::memory
