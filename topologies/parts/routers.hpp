// Direct networks: routers with GPUs behind them, joined to one another instead of to switches above. A GPU forwards
// nothing, so where the literature lets a server forward, a router stands for its forwarding engine.
#pragma once

#include <string_view>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "topologies/parts/tiers.hpp"
#include "topologies/parts/topology.hpp"

namespace manyworlds::topologies {

/// The routers of these GPUs with `hosts` NICs behind each, filled in GPU order (0: one router per node): adds them,
/// named prefix0, prefix1, …, and their NIC cables. The last may be partly filled.
Tier add_routers(core::network::Graph& graph, const Site& site, std::int64_t hosts, std::string_view prefix);

/// `cables` parallel cables between two routers. Among ways of equal length those of least `order` are taken first:
/// dimension-order routing, where it is the dimension.
void join_routers(core::network::Graph& graph, const Site& site, std::uint32_t a, std::uint32_t b, std::int64_t cables,
                  std::int64_t order);

/// Routers from a row, a plane or a box of the given sizes, x fastest.
using Sizes = std::vector<std::int64_t>;

/// `sizes` with every 0 replaced, so that their product is `routers` and they are as equal as that allows. Throws
/// core::InputError where none does, naming `topology`.
Sizes sizes_of(std::string_view topology, Sizes sizes, std::int64_t routers);

/// Joins neighbours in every dimension and, with `wrap`, the ends of every row of more than two.
void join_grid(core::network::Graph& graph, const Site& site, const Tier& routers, const Sizes& sizes, bool wrap,
               std::int64_t cables);

/// "4 x 4 x 8".
std::string text_of(const Sizes& sizes);

}  // namespace manyworlds::topologies
