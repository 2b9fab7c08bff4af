// Tiers of switches, as in leaf-spine fabrics. All network cables have the NIC's rate; oversubscription reduces the
// number of cables, never the rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

using Tier = std::vector<std::uint32_t>;  // the switches' vertices, in order

/// Adds and returns `count` switches named prefix0, prefix1, …
Tier add_tier(core::network::Graph& graph, std::int64_t count, std::string_view prefix);

/// Returns the `index`-th group of `size` switches; the last group may be smaller.
Tier subtier(const Tier& tier, std::int64_t index, std::int64_t size);

/// Adds one network cable from `lower` to `upper` (a GPU to its leaf, a leaf to a spine).
void add_network_cable(core::network::Graph& graph, const FabricSpec& spec, std::uint32_t lower, std::uint32_t upper);

/// Adds `cables` parallel cables between every switch of `lower` and every switch of `upper`.
void connect_tiers(core::network::Graph& graph, const FabricSpec& spec, const Tier& lower, const Tier& upper,
                   std::int64_t cables);

/// The cables from a leaf to the tier above: `uplinks` cables, spread evenly over `spines` switches.
struct Uplinks {
  std::int64_t uplinks;
  std::int64_t spines;
  std::int64_t cables() const { return uplinks / spines; }
};

/// Returns uplinks = hosts / oversubscription and the number of spines; `spines` = 0 means one spine per uplink. Throws
/// core::InputError, with the nearest valid values, if these are not integers. `topology` and `hosts_key` are the names
/// in messages.
Uplinks uplinks_of(std::string_view topology, std::string_view hosts_key, std::int64_t hosts, double oversubscription,
                   std::int64_t spines);

}  // namespace manyworlds::topologies
