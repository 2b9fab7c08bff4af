// Direct networks: routers with GPUs, connected to each other instead of to higher tiers. GPUs do not forward, so if
// servers forward in the literature, a router represents a server's forwarding engine.
#pragma once

#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/tiers.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// Adds routers, named prefix0, prefix1, …, with `hosts` NICs each (0: one router per node), assigned in GPU order, and
/// their NIC cables, and returns the routers. The last router may have fewer NICs.
Tier add_routers(core::network::Graph& graph, const FabricSpec& spec, std::int64_t hosts, std::string_view prefix);

/// Adds `cables` parallel cables between two routers. Among equally short paths, routing prefers links of the least
/// `order`; with the dimension as order, this is dimension-order routing.
void join_routers(core::network::Graph& graph, const FabricSpec& spec, std::uint32_t a, std::uint32_t b,
                  std::int64_t cables, std::int64_t order);

/// The sizes of a grid of routers (a row, a plane or a box), x first; x varies fastest in the routers' order.
using GridSizes = std::vector<std::int64_t>;

/// Returns `sizes` with every 0 replaced, so that their product is `routers` and the replaced sizes are as equal as
/// possible. Throws core::InputError, which names `topology`, if there is no such replacement.
GridSizes complete_sizes(std::string_view topology, GridSizes sizes, std::int64_t routers);

/// Connects neighbours in every dimension and, if `wrap`, both ends of every row of more than two routers.
void join_grid(core::network::Graph& graph, const FabricSpec& spec, const Tier& routers, const GridSizes& sizes,
               bool wrap, std::int64_t cables);

/// Returns sizes as text, such as "4 x 4 x 8".
std::string to_text(const GridSizes& sizes);

}  // namespace manyworlds::topologies
