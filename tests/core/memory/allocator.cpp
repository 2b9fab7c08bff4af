// The caching allocator's rounding on closed forms.
#include "core/memory/allocator.hpp"

#include <catch2/catch.hpp>

using namespace manyworlds::core::memory;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("blocks are multiples of 512 bytes") {
  CHECK(block_bytes(0) == 0);
  CHECK(block_bytes(1) == 512);
  CHECK(block_bytes(512) == 512);
  CHECK(block_bytes(513) == 1'024);
}

TEST_CASE("tensors share segments of 2 MiB up to 1 MiB and of 20 MiB below 10 MiB, and larger ones have their own") {
  CHECK(reserved_bytes(0) == 0);
  CHECK(reserved_bytes(512) == 512);    // 4,096 fit
  CHECK(reserved_bytes(kMiB) == kMiB);  // two fit
  CHECK(reserved_bytes(kMiB - 512) == kMiB);
  CHECK(reserved_bytes(kMiB + 512) == (20 * kMiB + 18) / 19);  // nineteen fit
  CHECK(reserved_bytes(4 * kMiB) == 4 * kMiB);
  CHECK(reserved_bytes(7 * kMiB) == 10 * kMiB);  // two fit
  CHECK(reserved_bytes(10 * kMiB - 512) == 10 * kMiB);
  CHECK(reserved_bytes(10 * kMiB) == 10 * kMiB);
  CHECK(reserved_bytes(10 * kMiB + 1) == 12 * kMiB);
  CHECK(reserved_bytes(64 * kMiB) == 64 * kMiB);
}

TEST_CASE("segments never hold less than the tensor and, beyond 1 MiB, less than twice as much") {
  for (std::int64_t bytes = 512; bytes < 100 * kMiB; bytes += bytes / 7 + 513) {
    CAPTURE(bytes);
    CHECK(reserved_bytes(bytes) >= bytes);
    CHECK(reserved_bytes(bytes) < 2 * bytes + 512);
  }
}
