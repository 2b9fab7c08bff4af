// How PyTorch's caching allocator lays tensors out in device memory (CUDACachingAllocator with its default settings):
// blocks are multiples of 512 B; blocks up to 1 MiB are cut from segments of 2 MiB, those below 10 MiB from segments of
// 20 MiB, and larger ones have a segment of their own, a multiple of 2 MiB.
#pragma once

#include <cstdint>

namespace manyworlds::core::memory {

/// What a tensor counts as allocated.
std::int64_t block_bytes(std::int64_t bytes);

/// Device memory that a tensor of `bytes` takes where many like it share segments: its part of a segment that holds as
/// many as fit.
std::int64_t reserved_bytes(std::int64_t bytes);

}  // namespace manyworlds::core::memory
