// Deterministic routing between pairs of GPUs, and the properties of a link that a simulation depends on.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/fabric/distances.hpp"
#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/next_hop_weights.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// The properties of a directed link that a simulation may depend on: links with equal specs are interchangeable.
struct LinkSpec {
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;
  bool leaves_gpu = false;  // the queue is in a NIC and sets no ECN marks
  bool enters_gpu = false;  // part of keys and saved states only; no engine reads it
  bool scale_up = false;
  bool operator==(const LinkSpec&) const = default;
};

/// Returns the spec of the link with the given id.
LinkSpec spec_of(const Graph& graph, std::uint32_t link);

inline constexpr std::size_t kMaxHops = 32;
using Route = std::vector<std::uint32_t>;  // links in path order, in the numbering of the route's owner

/// Shortest paths on a graph. A scale-up path is preferred over a network path. GPUs carry no transit traffic, except
/// that on graphs where GPUs relay, a packet that reached a GPU over a scale-up link may leave by its NIC.
/// Distances are cached per switch, so one Router should serve many look-ups. Not thread-safe.
class Router {
 public:
  Router(std::shared_ptr<const Graph> graph, const PathChoice& choice,
         DistanceMethod method = DistanceMethod::structure);
  Router(std::shared_ptr<const Graph> graph, Routing routing, std::uint64_t seed,
         DistanceMethod method = DistanceMethod::structure)
      : Router(std::move(graph), PathChoice{routing, seed}, method) {}

  /// Returns the links of the path from GPU `src` to GPU `dst` (src != dst). One of the two may instead be a switch
  /// that reduces or replicates. Among next hops of equal distance, those with the minimum Link::order are candidates
  /// (dimension-order routing on a mesh), and the routing policy selects one of them. destination_mod_k selects by the
  /// digits of the destination's number, hop by hop (Zahavi 2010, D-Mod-K). GPUs are numbered leaf by leaf for that, so
  /// that the GPUs behind one leaf spread over all paths to it; within a scale-up domain, where there is only one
  /// choice, the GPU number itself is used. ecmp_hash selects by hash(seed, entropy, hop) modulo the number of
  /// candidates; with HashSeeds::per_switch by hash(seed, entropy, switch), and with HashSeeds::same by one hash of
  /// (seed, entropy) in all switches, while a GPU with several ways out hashes on its own. With PathWeights::rate every
  /// candidate stands in the table that the hash selects from as often as its weight says (NextHopWeights). The other
  /// policies use all paths; one of the fastest represents them: at every switch the next hop of the highest rate, then
  /// of the lowest latency. Throws InputError when no path exists or when the path has more than kMaxHops links.
  Route route(std::uint32_t src, std::uint32_t dst, std::uint64_t entropy);

  const Graph& graph() const { return *graph_; }

 private:
  std::uint32_t fastest_of(const std::vector<std::uint32_t>& candidates) const;
  std::uint64_t hash_at(std::uint32_t vertex, std::uint64_t entropy, std::size_t hop) const;

  std::shared_ptr<const Graph> graph_;
  PathChoice choice_;
  Distances distances_;
  NextHopWeights weights_;
  std::vector<std::uint32_t> leaf_major_index_;  // by vertex: GPUs numbered leaf by leaf; a switch keeps its id
  std::vector<std::uint32_t> candidates_;        // candidate links at the current hop
};

}  // namespace manyworlds::core::network
