// Weights of next hops by the rate that they lead on with: WCMP (Zhou et al., "WCMP: Weighted Cost Multipathing for
// Improved Fairness in Data Centers", EuroSys 2014).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/network/fabric/distances.hpp"
#include "core/network/fabric/graph.hpp"

namespace manyworlds::core::network {

/// The weight of a next hop is its rate, but no more than what the switch at its end can pass on towards the
/// destination: the sum of the weights of its own next hops. The last links, into the destination, do not count: they
/// are as slow for all ways. So a slow or missing cable counts in the switch that it leaves and in all before it, as
/// far as they are limited by it; what other destinations take of the same links does not. Weights are those of the
/// graph, whatever is under way. Not thread-safe.
class NextHopWeights {
 public:
  /// Both must outlive this.
  NextHopWeights(const Graph& graph, const Distances& distances) : graph_(graph), distances_(distances) {}

  /// Returns the position among `candidates`, the next hops of one vertex to `destination`, that `hash` selects: the
  /// table has each as often as its weight over the greatest common divisor of all. With equal weights that is hash %
  /// candidates.size(). The destination must be that of the distances.
  std::uint32_t pick(const std::vector<std::uint32_t>& candidates, std::uint32_t destination, std::uint64_t hash);

 private:
  using Weights = std::unordered_map<std::uint32_t, std::int64_t>;          // by vertex: what it can pass on
  using Attachment = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // last hops of a destination
  std::int64_t weight_of(std::uint32_t link, std::uint32_t destination, Weights& known) const;

  const Graph& graph_;
  const Distances& distances_;
  std::map<Attachment, Weights> known_;  // destinations with equal last hops have equal weights
};

}  // namespace manyworlds::core::network
