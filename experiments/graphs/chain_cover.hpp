// Streams for a graph: chains of nodes of which each waits for the one before it, so that a FIFO stream per chain adds
// no dependency that the graph lacks.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/graphs/rank_graph.hpp"

namespace manyworlds::experiments::graphs {

inline constexpr std::uint32_t kNoChain = 0xffffffff;

struct ChainCover {
  std::vector<std::uint32_t> chain;               // by node; kNoChain: takes no time
  std::vector<std::vector<std::uint32_t>> after;  // by node: nodes of other chains, none of which another implies
  std::vector<bool> is_host;                      // by chain: of what a thread of the host does
  std::int64_t added = 0;  // nodes that wait for one of their resource without the graph's asking
};

/// Covers a graph by chains of nodes of one sort of work, in `order`: a node continues the chain of the same sort
/// whose last node it waits for, directly or not, the latest of these, and begins a new one if there is none. Nodes of
/// one resource are one chain, as are those of one queue. Dependencies that others imply are left out (transitive
/// reduction), but those on nodes of queues where there are more than 1,024 queues: time and memory would grow with
/// their square.
ChainCover cover_by_chains(const RankGraph& graph, const std::vector<std::uint32_t>& order);

}  // namespace manyworlds::experiments::graphs
