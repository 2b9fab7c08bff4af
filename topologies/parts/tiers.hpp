// Tiers of switches, as leaf-spine fabrics share them. Every cable of the network has the NIC's rate; oversubscription
// takes cables away, never rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

using Tier = std::vector<std::uint32_t>;  // vertices of the switches, in order

/// `count` switches named prefix0, prefix1, …
Tier add_tier(core::network::Graph& graph, std::int64_t count, std::string_view prefix);

/// The `index`-th group of `size` switches; the last one may be smaller.
Tier part(const Tier& tier, std::int64_t index, std::int64_t size);

/// One network cable from `lower` to `upper` (a GPU to its leaf, a leaf to a spine).
void connect(core::network::Graph& graph, const Site& site, std::uint32_t lower, std::uint32_t upper);

/// `cables` parallel cables between every switch of `lower` and every one of `upper`.
void join(core::network::Graph& graph, const Site& site, const Tier& lower, const Tier& upper, std::int64_t cables);

/// What a leaf has above it: `uplinks` cables, spread evenly over `spines` switches.
struct Uplinks {
  std::int64_t uplinks;
  std::int64_t spines;
  std::int64_t cables() const { return uplinks / spines; }
};

/// uplinks = hosts / oversubscription; `spines` 0 stands for one spine per uplink. Throws core::InputError where these
/// are not whole numbers, with the nearest values that are. `topology` and `hosts_key` name them to the user.
Uplinks uplinks_of(std::string_view topology, std::string_view hosts_key, std::int64_t hosts, double oversubscription,
                   std::int64_t spines);

}  // namespace manyworlds::topologies
