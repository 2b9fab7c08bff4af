// Device memory that libraries take for themselves: workspaces of matrix multiplications, buffers of communicators, the
// context.
#pragma once

#include <cstdint>

#include "core/compute/gpu.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

struct LibraryBytes {
  std::int64_t workspaces = 0;     // from the framework's allocator
  std::int64_t communicators = 0;  // beside it, as is the context
  std::int64_t context = 0;
};

LibraryBytes library_bytes(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::memory
