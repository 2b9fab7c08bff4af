// A collective algorithm that is given as data and not as code: thread blocks of members that run steps in order, as
// algorithms of MSCCL have them (Cowan et al., "MSCCLang: Microsoft Collective Communication Language", ASPLOS 2023,
// section 4).
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/dag/kind.hpp"

namespace manyworlds::core::collective {

/// A step of a thread block. What it copies or reduces takes no time, as in all algorithms; it then only waits.
struct BlockStep {
  bool receives = false, sends = false;         // the one, then the other
  bool keeps_slot = false;                      // what it received is in its slot until it is sent on
  std::uint32_t chunks = 0;                     // that it receives, and that it sends
  std::int32_t wait_block = -1, wait_step = 0;  // index into GivenAlgorithm::blocks, of the same member; -1: none
  bool is_waited_for = false;
  auto operator<=>(const BlockStep&) const = default;
};

struct ThreadBlock {
  std::uint32_t member = 0;
  std::int32_t send_to = -1, receive_from = -1;  // members; -1: none
  std::uint32_t channel = 0;
  std::vector<BlockStep> steps;
  auto operator<=>(const ThreadBlock&) const = default;
};

/// An algorithm for one kind of operation among so many members. It must come to its end: every transfer is received,
/// of as many chunks, and no steps wait for one another in a circle.
struct GivenAlgorithm {
  std::string name;
  Kind kind = Kind::all_reduce;
  std::uint32_t members = 0;
  std::int64_t chunks = 1;      // of all that Kind means by an operation's bytes
  std::int64_t loop_bytes = 1;  // most bytes of a chunk that are moved at once; a longer one takes several loops
  std::int64_t slots = 1;       // of a connection: transfers that are under way, or that the receiver has not taken yet
  Protocol protocol = Protocol::simple;  // simple, ll or ll128
  std::vector<ThreadBlock> blocks;
  auto operator<=>(const GivenAlgorithm&) const = default;

  /// Returns whether an operation can be divided into its chunks, with at most 2^24 steps in all loops.
  bool divides(std::int64_t bytes) const;
};

/// How the chunks of an operation are moved: in `count` loops, of which the last moves `last` bytes of each, and the
/// others `most`.
struct Loops {
  std::int64_t count = 1, most = 0, last = 0;
};
/// Returns the loops of chunks of so many bytes, which must be more than 0.
constexpr Loops loops_of(std::int64_t chunk_bytes, std::int64_t loop_bytes) {
  const std::int64_t most = chunk_bytes < loop_bytes ? chunk_bytes : loop_bytes;
  const std::int64_t count = (chunk_bytes + most - 1) / most;
  return {count, most, chunk_bytes - (count - 1) * most};
}

/// A given algorithm that several shapes have, or none. Two are equal if their algorithms are.
struct SharedAlgorithm {
  std::shared_ptr<const GivenAlgorithm> data;

  explicit operator bool() const { return data != nullptr; }
  const GivenAlgorithm& operator*() const { return *data; }
  const GivenAlgorithm* operator->() const { return data.get(); }
  bool operator==(const SharedAlgorithm& other) const { return (*this <=> other) == 0; }
  std::strong_ordering operator<=>(const SharedAlgorithm& other) const {
    if (data == other.data) return std::strong_ordering::equal;
    if (!data || !other.data) return !data ? std::strong_ordering::less : std::strong_ordering::greater;
    return *data <=> *other.data;
  }
};

}  // namespace manyworlds::core::collective
