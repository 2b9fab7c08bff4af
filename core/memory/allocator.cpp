// Closed forms of the caching allocator's rounding.
#include "core/memory/allocator.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::memory {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kBlockGranularity = 512;
constexpr std::int64_t kMaxSmallBlock = kMiB;          // largest block in small segments
constexpr std::int64_t kSmallSegment = 2 * kMiB;       // also the granularity of large segments
constexpr std::int64_t kMediumBlockLimit = 10 * kMiB;  // blocks below this size are in medium segments
constexpr std::int64_t kMediumSegment = 20 * kMiB;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Returns the part of a segment that one of as many equal blocks as fit takes.
std::int64_t share_of_segment(std::int64_t block, std::int64_t segment) {
  const std::int64_t blocks_per_segment = segment / block;
  return (segment + blocks_per_segment - 1) / blocks_per_segment;
}

}  // namespace

std::int64_t block_bytes(std::int64_t bytes) {
  MANYWORLDS_CHECK(bytes >= 0, "a tensor of {} bytes", bytes);
  return rounded_up(bytes, kBlockGranularity);
}

std::int64_t reserved_bytes(std::int64_t bytes) {
  const std::int64_t block = block_bytes(bytes);
  if (block == 0) return 0;
  if (block <= kMaxSmallBlock) return share_of_segment(block, kSmallSegment);
  if (block < kMediumBlockLimit) return share_of_segment(block, kMediumSegment);
  return rounded_up(block, kSmallSegment);
}

}  // namespace manyworlds::core::memory
