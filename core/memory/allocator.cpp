// Closed forms of the caching allocator's rounding.
#include "core/memory/allocator.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kSmallBlocks = kMiB;        // at most: from small segments
constexpr std::int64_t kSmallSegment = 2 * kMiB;   // also what large segments are multiples of
constexpr std::int64_t kMediumBlocks = 10 * kMiB;  // below: from medium segments
constexpr std::int64_t kMediumSegment = 20 * kMiB;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::int64_t share_of_segment(std::int64_t block, std::int64_t segment) {
  const std::int64_t fitting = segment / block;
  return (segment + fitting - 1) / fitting;
}

}  // namespace

std::int64_t block_bytes(std::int64_t bytes) {
  MANYWORLDS_CHECK(bytes >= 0, "a tensor of {} bytes", bytes);
  return rounded_up(bytes, kBlock);
}

std::int64_t reserved_bytes(std::int64_t bytes) {
  const std::int64_t block = block_bytes(bytes);
  if (block == 0) return 0;
  if (block <= kSmallBlocks) return share_of_segment(block, kSmallSegment);
  if (block < kMediumBlocks) return share_of_segment(block, kMediumSegment);
  return rounded_up(block, kSmallSegment);
}

}  // namespace manyworlds::core::memory
