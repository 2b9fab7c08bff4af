// What the topology tests measure on a graph, the slow and obvious way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/network/fabric/router.hpp"
#include "topologies/fabrics/registry.hpp"

namespace manyworlds::topologies::tests {

inline constexpr std::int64_t kNic = 400'000'000'000;
inline constexpr std::int64_t kScaleUp = 3'600'000'000'000;

/// A site of H100-like rates.
FabricSpec fabric_spec_of(std::int64_t nodes, std::int64_t gpus_per_node, core::compute::ScaleUp scale_up);

/// Every registered fabric that is built, not read from a file.
std::vector<Topology> fabrics();

/// The graph of a registered fabric.
core::network::Graph build(const std::string& name, const core::OptionSet& options, const FabricSpec& spec);

/// Whether every GPU reaches every other over links of this kind without passing through a third GPU.
bool connected(const core::network::Graph& graph, core::network::LinkKind kind,
               const std::function<bool(std::uint32_t, std::uint32_t)>& expected);

/// Greatest flow in bits per second over network links from the GPUs that `source` picks to all others (the minimum
/// cut between them), by Ford and Fulkerson's method with breadth-first paths.
std::int64_t bisection(const core::network::Graph& graph, const std::function<bool(std::uint32_t)>& source);

/// The routes of all pairs of GPUs.
std::vector<core::network::Route> all_routes(const core::network::Graph& graph, core::network::Routing routing);

/// Whether there is a cycle of links, each waiting for the next because some route uses one right after the other:
/// the channel dependency graph of Dally and Seitz 1987.
bool waits_in_cycle(const core::network::Graph& graph, const std::vector<core::network::Route>& routes);

/// Vertices that a route visits, by name.
std::vector<std::string> names_on(const core::network::Graph& graph, const core::network::Route& route);

/// Switches whose name begins with `prefix`.
std::int64_t count(const core::network::Graph& graph, const std::string& prefix);

/// Cables between switches.
std::int64_t trunk_cables(const core::network::Graph& graph);

}  // namespace manyworlds::topologies::tests
