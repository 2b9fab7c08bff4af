// A rank's trace as a program: operations of its device and its host's threads, in an order in which each comes after
// what it waits for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "experiments/profiler_traces/collectives.hpp"
#include "experiments/profiler_traces/launches.hpp"
#include "experiments/profiler_traces/waits.hpp"
#include "experiments/programs/names.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::profiler {

/// What becomes of collectives: what the network makes of them; kernels of the times that they took, with waiting for
/// other ranks; kernels of the shortest time over the ranks, as if none had waited.
enum class Collectives : std::uint8_t { simulated, as_recorded, without_waiting };

struct RankAccount {
  programs::Dependencies between_streams, host;
  std::int64_t unresolved = 0, of_library = 0, launches = 0, handovers = 0, unlaunched = 0, overlapping = 0, cycles = 0;
  std::int64_t late = 0;
  double gaps_us = 0, late_us = 0;
  double span_us = 0;  // from the beginning to the end of the last operation, as recorded
  std::size_t operations = 0, threads = 0, devices = 0;
};

struct AssembledRank {
  programs::RankProgram program;
  RankAccount account;
};

/// `begin` is the time of the trace at which all ranks begin, at most the trace's own. `matched` are the operations
/// that are collectives of several ranks, `shortest` their times by instance.
AssembledRank assemble_rank(const RankTrace& trace, const std::map<std::uint32_t, MatchedOp>& matched,
                            const MatchedCollectives& all, Collectives collectives, std::int64_t begin,
                            programs::Names& names);

}  // namespace manyworlds::experiments::profiler
