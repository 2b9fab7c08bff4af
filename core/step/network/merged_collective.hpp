// Members of a collective that packets cannot tell apart, simulated once.
//
// A rotation of the members by `width` maps every connection onto another one. If it also maps the links of every route
// onto those of the other, link by link and with equal rates and latencies, and if it leaves the transfers unchanged
// (TransferGenerator::least_width()), then the whole network is a covering of a smaller one, in which connections and
// links that rotations map onto each other are one. What happens at a link depends on the packets that arrive there
// alone, so the smaller network has the same events at the same instants, provided that packets which meet at a link
// are distinct in it and are served in the same order when they arrive at one instant. Both hold if along every link
// the rows and positions of its connections, in the order of their numbers, are strictly ascending after merging: ties
// are broken by transfer, transfers are numbered row by row as connections are, and merging changes positions alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/collective/dag/transfer_generator.hpp"
#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/step/network/isolated.hpp"

namespace manyworlds::core::step {

struct MergedCollective {
  std::shared_ptr<const collective::TransferGenerator> generator;
  std::vector<network::Route> routes;  // by pair of `generator`, over `links`
  std::vector<std::uint32_t> links;    // one link of the graph for all that are merged with it

  std::uint32_t width() const { return generator->width(); }
  std::uint32_t copies() const { return generator->all_members() / generator->width(); }
  /// Returns the pair of `generator` that stands for `pair` of the whole collective.
  std::uint32_t representative(std::uint32_t pair) const {
    return pair / generator->all_members() * width() + pair % generator->all_members() % width();
  }
};

/// Merges as many members of a collective as possible. Its routes are those of build(shape).pairs. Returns nothing if
/// no members can be merged, or if the transfers of its algorithm have to be written out.
std::optional<MergedCollective> merge_members(const collective::Shape& shape, const std::vector<network::Route>& routes,
                                              const network::Graph& graph, const network::Transport& transport);

/// Simulates a collective that all members enter at once, and returns what simulate_isolated() returns for the whole;
/// nothing if it deadlocks.
std::optional<IsolatedResult> simulate_merged(const MergedCollective& merged, const network::Graph& graph,
                                              network::ComponentCache& cache);

}  // namespace manyworlds::core::step
