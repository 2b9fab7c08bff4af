// A fabric ready to carry flows: what one link does to one packet, and the links a pair of GPUs uses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/fabric/distances.hpp"
#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

/// Everything a simulation may know of a directed link: two links with equal specs are interchangeable.
struct LinkSpec {
  std::int64_t bits_per_second = 0;
  Time latency_ps = 0;
  bool leaves_gpu = false;  // its queue is a NIC's: unmarked, unpaused by ingress accounting
  bool enters_gpu = false;  // what it delivers is consumed at once
  bool scale_up = false;
  bool operator==(const LinkSpec&) const = default;
};

LinkSpec spec_of(const Graph& graph, std::uint32_t link);

inline constexpr std::size_t kMaxHops = 32;
using Route = std::vector<std::uint32_t>;  // links in order; their numbering belongs to whoever holds the route

/// Shortest paths on a graph; a scale-up path wins over a network path. GPUs carry no transit traffic, except that on
/// graphs where GPUs relay, what reached one over a scale-up link may leave by its NIC.
/// Distances are kept per switch, so one Router serves many look-ups (not thread-safe).
class Router {
 public:
  Router(std::shared_ptr<const Graph> graph, Routing routing, std::uint64_t seed);

  /// Links from GPU `src` to GPU `dst` (src != dst); one of them may be a switch that reduces or replicates. Among ways
  /// of equal length those over the links of least order are taken (dimension order, on a mesh); what choice is left
  /// follows the routing policy: destination_mod_k takes the digits of the destination's number hop by hop (Zahavi
  /// 2010, D-Mod-K), where GPUs are numbered leaf by leaf, so that those behind one leaf spread over all ways to it
  /// (inside a scale-up domain, which has one choice to make, by their own numbers); ecmp_hash takes hash(seed,
  /// entropy, hop). Throws InputError when no path exists.
  Route route(std::uint32_t src, std::uint32_t dst, std::uint64_t entropy);

  const Graph& graph() const { return *graph_; }

 private:
  void find_choices(std::uint32_t vertex, std::uint32_t dst);

  std::shared_ptr<const Graph> graph_;
  Routing routing_;
  std::uint64_t seed_;
  Distances distances_;
  std::vector<std::uint32_t> number_;   // of each GPU, leaf by leaf; of switches their own
  std::vector<std::uint32_t> choices_;  // of the hop at hand
};

}  // namespace manyworlds::core::network
