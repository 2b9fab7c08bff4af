// Collectives of several ranks' traces, matched by group and order: which operations of the ranks are one, how long the
// shortest of them took, and by how much the clocks of the ranks differ.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/workload/build/given_programs.hpp"
#include "experiments/profiler_events/communication.hpp"

namespace manyworlds::experiments::profiler {

/// A collective, or an end of a transfer, that all of its ranks have in their traces.
struct MatchedOp {
  std::uint32_t dimension = 0;
  std::uint32_t instance = 0;  // of all matched ones: the same for all ranks
  NamedCollective what;
};

/// What is known of the clock of a rank.
struct RankClock {
  std::int64_t ahead = 0;     // ns, of that of the first trace
  std::int64_t spread = 0;    // ns: half of the collectives' ends differ by no more from that
  std::int64_t compared = 0;  // collectives; 0: it could not be compared
};

struct MatchedCollectives {
  std::vector<core::workload::Dimension> dimensions;
  std::vector<core::workload::GivenGroup> groups;       // of positions in the list of traces
  std::vector<std::map<std::uint32_t, MatchedOp>> ops;  // by trace: of its operations
  std::vector<RankClock> clocks;                        // by trace
  std::vector<std::int64_t> shortest;                   // by instance: ns, over its ranks
  std::int64_t kernels = 0;                             // of NCCL or RCCL in all traces
  std::int64_t unnamed = 0;                             // of these, without kind, size or ranks
  std::int64_t missing = 0;                             // with ranks whose traces are not there
  std::int64_t unmatched = 0;                           // that other ranks' traces do not have in the same order
  std::int64_t averaged = 0;                            // all-to-alls that differ by rank in bytes or counts
  double matched_ns = 0, shortest_ns = 0;               // sums over all matched operations
};

/// `traces` are in the order of their ranks, and all have one if there are several. With `alike`, the only one stands
/// for all ranks of its job, which `groups` are of then: they are in groups like its own, and send as far as it does.
MatchedCollectives match_collectives(const std::vector<RankTrace>& traces, bool alike = false);

}  // namespace manyworlds::experiments::profiler
