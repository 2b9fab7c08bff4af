// A collective as ASTRA-sim carries it out: chunks, each of which goes through phases, one per dimension of the network
// (Sys::generate_collective), each of rounds of messages (Ring.cc, AllToAll.cc, HalvingDoubling.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/astra_sim/files/network_file.hpp"
#include "experiments/astra_sim/files/system_file.hpp"

namespace manyworlds::experiments::astra_sim {

/// A collective; `bytes` as ASTRA-sim's comm_size: of an all-gather what a member gives.
struct Call {
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t bytes = 0;
  std::vector<bool> involved = {};  // dimensions of the network (involved_dim); none: all, or a group's one ring
  std::optional<std::uint32_t> custom = {};  // the custom algorithm that carries it out (custom_algorithms.hpp)
  auto operator<=>(const Call&) const = default;
};

/// A message of each member: to the one `distance` places on, or with `is_exchange` to the one whose place differs by
/// these bits.
struct Message {
  std::int64_t bytes = 0;
  std::uint32_t distance = 1;
  bool is_exchange = false;

  std::uint32_t receiver(std::uint32_t place, std::uint32_t members) const {
    return is_exchange ? place ^ distance : (place + distance) % members;
  }
  std::uint32_t sender(std::uint32_t place, std::uint32_t members) const {
    return is_exchange ? place ^ distance : (place + members - distance) % members;
  }
};

/// Messages that a member sends at once. The next round begins `after_ns` after it has sent these and has all of its
/// own: an endpoint's delay and the reduction.
struct Round {
  std::vector<Message> messages;
  std::int64_t after_ns = 0;
  std::int64_t times = 1;
};

/// A phase that goes up a binary tree and down again (DoubleBinaryTreeAllReduce.cc), whatever the collective is.
struct Tree {
  std::int64_t bytes = 0;  // of every message
  std::int64_t endpoint_ns = 0, reduction_ns = 0;
};

struct Phase {
  std::uint32_t queue = 0;             // the dimension whose active chunks it is one of
  std::vector<std::uint32_t> members;  // ranks, of which one may stand for all by symmetry
  std::int64_t before_ns = 0;          // an endpoint's delay, before the first round
  std::vector<Round> rounds;
  bool needs_equal_messages =
      false;                 // rounds of several messages behind one another hold only where these come at once
  std::optional<Tree> tree;  // instead of rounds: which of two trees, the chunks of a dimension take in turn
};

/// The chunks of a collective are alike.
struct Chunks {
  std::int64_t count = 0;
  std::vector<Phase> phases;

  bool has_tree() const;
};

/// Returns how many chunks there are and how many bytes each has. Throws InputError.
std::pair<std::int64_t, std::int64_t> chunk_sizes(const Call& call, const System& system, const Network& network);

/// Returns the chunks of a collective of a group of ranks: of all of them, or of those that lie in the dimensions that
/// it involves, by the dimensions of the network, else by one ring of its members, whose endpoints take 10 ns whatever
/// the system says (MemBus::Transmition::Fast). Throws InputError with the system's file and key for what ASTRA-sim or
/// this model cannot do.
Chunks chunks_of(const Call& call, const std::vector<std::uint32_t>& group, const System& system,
                 const Network& network);

}  // namespace manyworlds::experiments::astra_sim
