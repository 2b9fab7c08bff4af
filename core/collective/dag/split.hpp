// Distribution of a collective's bytes over its members, if it is uneven (as in MPI's alltoallv), and the root of
// rooted ones.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace manyworlds::core::collective {

/// all_to_all: `bytes` has, by member, the bytes that every member sends to it or, if `by_source`, that it sends to
/// every member (itself included); the sum is the operation's bytes. broadcast and reduce: all bytes are at the root.
/// If `bytes` is empty, the split is even and the root is member 0.
struct Split {
  std::vector<std::int64_t> bytes;
  bool by_source = false;

  bool even() const { return bytes.empty(); }
  auto operator<=>(const Split&) const = default;
};

/// Returns the split of a rooted operation: all bytes at member `root`.
inline Split rooted_split(std::uint32_t root, std::uint32_t members, std::int64_t bytes) {
  Split split;
  split.bytes.assign(members, 0);
  split.bytes[root] = bytes;
  return split;
}

}  // namespace manyworlds::core::collective
