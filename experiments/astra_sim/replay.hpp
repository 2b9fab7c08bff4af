// A job's graphs as ASTRA-sim runs them on its analytical network (Workload.cc, HardwareResource.cc): when every node
// of every rank begins and ends.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "experiments/astra_sim/collectives/collective_times.hpp"
#include "experiments/astra_sim/files/memory_file.hpp"
#include "experiments/graphs/rank_graph.hpp"

namespace manyworlds::experiments::astra_sim {

/// The graphs of a job: ranks may share one.
struct Job {
  std::vector<graphs::RankGraph> graphs;
  std::vector<std::uint32_t> graph_of_rank;
  std::vector<std::vector<std::uint32_t>> groups;         // the first is of all ranks
  std::map<std::uint32_t, std::vector<bool>> dimensions;  // of groups that are of some dimensions of the network alone
};

struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct Replay {
  std::vector<std::vector<Span>> spans;  // by rank and node
  std::int64_t longest_ns = 0;           // until the last rank is done
};

/// Runs all ranks. A resource of a rank gives itself to the ready node with the smallest id; receives have none. What
/// ends at one time all ends before anything begins. Nodes of no work take no time; kernels and work of the host take
/// their time, rounded to nanoseconds; copies an access of `memory`; a broadcast its own duration, as in ASTRA-sim; a
/// transfer the way between its ranks, from when it is sent. Throws InputError for copies without a memory to go to,
/// for transfers with congestion, for collectives whose members differ, and for ranks that wait for ever, with what
/// they wait for.
Replay replay(const Job& job, const Network& network, const Memory& memory, Congestion congestion,
              CollectiveTimes& collectives);

}  // namespace manyworlds::experiments::astra_sim
