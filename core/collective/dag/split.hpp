// Who of a collective's members sends how much, where it is not the same for all.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace manyworlds::core::collective {

/// Of an all-to-all, by member: what everybody sends to it, or (by_source) what it sends to everybody, itself included;
/// that adds up to the operation's bytes. Of a broadcast or a reduction: all bytes at the root. Empty: everybody as
/// much, from member 0.
struct Split {
  std::vector<std::int64_t> bytes;
  bool by_source = false;

  bool even() const { return bytes.empty(); }
  auto operator<=>(const Split&) const = default;
};

/// All of it at one of so many members.
inline Split rooted(std::uint32_t root, std::uint32_t members, std::int64_t bytes) {
  Split made;
  made.bytes.assign(members, 0);
  made.bytes[root] = bytes;
  return made;
}

}  // namespace manyworlds::core::collective
