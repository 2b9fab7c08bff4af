// Rounding of PyTorch's caching allocator (CUDACachingAllocator with default settings): block sizes are multiples of
// 512 B; blocks up to 1 MiB are allocated in segments of 2 MiB, blocks below 10 MiB in segments of 20 MiB, and larger
// blocks have their own segment, a multiple of 2 MiB.
#pragma once

#include <cstdint>

namespace manyworlds::core::memory {

/// Returns the bytes that PyTorch counts as allocated for a tensor of `bytes`.
std::int64_t block_bytes(std::int64_t bytes);

/// Returns the device memory of a tensor of `bytes`: its share of a segment that is filled with as many tensors of that
/// size as fit.
std::int64_t reserved_bytes(std::int64_t bytes);

}  // namespace manyworlds::core::memory
