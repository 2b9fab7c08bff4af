// The communicators of NCCL in exports: who is in them, and which ranks of the job these are.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::nsys {

/// What is known of a communicator: from the ranges in which it was created, or from who calls it.
struct Communicator {
  std::int64_t ranks = -1;                       // below 0: its creation is not in the exports
  std::map<std::int64_t, std::uint32_t> traces;  // by rank, as its creation tells
  std::set<std::uint32_t> users;                 // traces with collectives of it
};
using Communicators = std::map<std::uint64_t, Communicator>;

/// What became of the communicators of all exports.
struct ResolvedCommunicators {
  bool world_is_known = false;                             // one has all ranks, which are numbered as it has them
  std::int64_t created = 0, inferred = 0, incomplete = 0;  // with creation; of those who use it; of unknown members
};

/// Numbers the ranks of traces as the largest communicator has them that they are all in, or else by their files'
/// names, or else as they come; and sets the ranks of groups, the peers of transfers and the bytes of gathered results.
ResolvedCommunicators resolve(const Communicators& communicators, std::vector<profiler::RankTrace>& traces);

}  // namespace manyworlds::experiments::nsys
