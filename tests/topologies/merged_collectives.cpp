// Collectives of which alike members are simulated once, against every packet of all members.
#include <catch2/catch.hpp>
#include <set>

#include "core/network/transports/registry.hpp"
#include "core/step/network/merged_collective.hpp"
#include "tests/topologies/collectives_on_fabrics.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using core::collective::Algorithm;
using core::collective::Kind;
using core::collective::Shape;
using core::network::Transport;

namespace {

struct Draw {
  std::mt19937_64 random;
  std::uint32_t below(std::uint64_t bound) { return static_cast<std::uint32_t>(random() % bound); }
};

/// A fabric on which rotations of the members may map routes onto routes, often one that is short of bandwidth.
std::shared_ptr<const Graph> draw_graph(Draw& draw, std::int64_t nodes, std::int64_t per_node) {
  using std::int64_t;
  const int64_t gpus = nodes * per_node;
  switch (draw.below(7)) {
    case 0:
      return fabric("rail_optimized", {}, gpus, per_node);
    case 1:
      return fabric("rail_optimized", {{"nodes_per_pod", int64_t{2}}, {"oversubscription", 2.0}}, gpus, per_node);
    case 2:
      return fabric("fat_tree", {{"leaf_hosts", int64_t{4}}, {"oversubscription", 4.0}}, gpus, per_node);
    case 3:
      return fabric("fat_tree", {{"leaf_hosts", int64_t{2}}, {"tiers", int64_t{3}}, {"pod_leaves", int64_t{2}}}, gpus,
                    per_node);
    case 4:
      return fabric("rail_only", {}, gpus, per_node);
    case 5:
      return fabric("full_mesh", {{"router_hosts", int64_t{2}}}, gpus, per_node);
    default:
      return fabric("one_switch", {}, gpus, per_node);
  }
}

/// The same with one cable of another rate.
std::shared_ptr<const Graph> with_odd_cable(const Graph& graph, Draw& draw) {
  auto result = std::make_shared<Graph>(graph);
  result->links[draw.below(graph.links.size())].bits_per_second /= 3;
  return result;
}

Transport draw_transport(Draw& draw) {
  std::vector<std::string> kinds;
  for (const auto& type : core::network::transports())
    if (type.make_engine != nullptr) kinds.push_back(type.name);
  Transport transport;
  transport.kind = kinds[draw.below(kinds.size())];
  transport.routing =
      draw.below(4) == 0 ? core::network::Routing::ecmp_hash : core::network::Routing::destination_mod_k;
  transport.seed = draw.below(1'000);
  transport.window_bytes = (4 + draw.below(60)) * 4'160;
  if (draw.below(2) == 0) transport.pfc_xoff_bytes = 9'000, transport.pfc_xon_bytes = 5'000;
  transport.ecn_kmin_bytes = 200, transport.ecn_kmax_bytes = 4'000;
  return transport;
}

Shape draw_shape(Draw& draw, std::uint32_t members, std::uint32_t per_node) {
  Shape shape{Kind::all_to_all, Algorithm::pairwise, members, 0, per_node};
  if (draw.below(3) > 0) {
    constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter};
    shape.kind = kKinds[draw.below(3)];
    shape.algorithm = per_node > 1 && draw.below(2) == 0 ? Algorithm::two_level : Algorithm::ring;
    shape.channels = 1 + draw.below(3);
    if (draw.below(2) == 0) shape.chunk_bytes = 6'000;
  }
  shape.bytes = std::int64_t{members} * (draw.below(2) == 0 ? 20'480 : draw.below(40'000));
  if (draw.below(2) == 0) shape.protocol = core::collective::Protocol::ll128;
  return shape;
}

std::vector<core::Time> exits_of(const Seen& seen, std::uint32_t members) {
  std::vector<core::Time> exits(members);
  for (const core::network::Exit& exit : seen.exits) exits[exit.member] = exit.at;
  return exits;
}

/// Whether two connections share a link.
bool share_links(const std::vector<Route>& routes) {
  std::set<std::uint32_t> links;
  for (const Route& route : routes)
    for (const std::uint32_t link : route)
      if (!links.insert(link).second) return true;
  return false;
}

}  // namespace

TEST_CASE("a collective whose alike members are merged has the picoseconds of all its packets") {
  std::size_t merged_count = 0, two_level = 0, with_contention = 0, with_pauses = 0, with_marks = 0, not_merged = 0;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    Draw draw{std::mt19937_64(seed)};
    const std::uint32_t per_node = 1u << draw.below(3), nodes = 2 + 2 * draw.below(per_node == 1 ? 8 : 5);
    auto graph = draw_graph(draw, nodes, per_node);
    if (draw.below(8) == 0) graph = with_odd_cable(*graph, draw);
    const Transport transport = draw_transport(draw);
    const Shape shape = draw_shape(draw, nodes * per_node, per_node);
    INFO("seed " << seed << ": " << shape.text() << " per node " << per_node << ", " << transport.kind);
    core::network::Router router(graph, transport.routing, static_cast<std::uint64_t>(transport.seed));
    std::vector<std::uint32_t> gpus(shape.members);
    std::iota(gpus.begin(), gpus.end(), 0u);
    const core::collective::Dag dag = core::collective::build(shape);
    std::vector<Route> routes;
    for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair)
      routes.push_back(core::step::route_of(router, {dag.pairs, dag.switches}, gpus, pair, pair));
    const auto merged = core::step::merge_members(shape, routes, *graph, transport);
    if (!merged) {
      ++not_merged;
      continue;
    }
    core::network::ComponentCache cache(transport);
    const auto result = core::step::simulate_merged(*merged, *graph, cache);
    REQUIRE(result);
    const Seen all = carry_out(graph, router, gpus, {shape}, transport, true);
    REQUIRE(result->exits == exits_of(all, shape.members));
    REQUIRE(result->counters.link_hops == all.counters.link_hops);
    REQUIRE(result->counters.ecn_marks == all.counters.ecn_marks);
    REQUIRE(result->counters.pauses == all.counters.pauses);
    ++merged_count;
    two_level += shape.algorithm == Algorithm::two_level;
    with_contention += share_links(merged->routes);
    with_pauses += all.counters.pauses > 0;
    with_marks += all.counters.ecn_marks > 0;
  }
  UNSCOPED_INFO(merged_count << " merged, " << two_level << " on two levels, " << with_contention
                             << " with shared links, " << with_pauses << " with pauses, " << with_marks
                             << " with marks, " << not_merged << " not");
  CHECK((merged_count > 300 && two_level > 60 && with_contention > 200 && with_pauses > 20 && with_marks > 8 &&
         not_merged > 100));
}

TEST_CASE("on rails a ring of any size is simulated as one of two nodes") {
  for (const std::uint32_t nodes : {4u, 16u, 64u}) {
    const Shape shape{Kind::all_reduce, Algorithm::ring, nodes * 8, std::int64_t{nodes} * 8 * 4'096, 8};
    const auto graph = fabric("rail_optimized", {}, shape.members, 8);
    core::network::Router router(graph, core::network::Routing::destination_mod_k, 1);
    const auto generator = core::collective::generator_of(shape, shape.members);
    std::vector<Route> routes;
    for (std::uint32_t pair = 0; pair < generator->pairs(); ++pair)
      routes.push_back(router.route(generator->ends(pair).first, generator->ends(pair).second, pair));
    const auto merged = core::step::merge_members(shape, routes, *graph, Transport());
    REQUIRE(merged);
    CHECK(merged->width() == 16);
    CHECK(merged->generator->transfers() == 16 * 2 * (shape.members - 1));
    CHECK(merged->links.size() == 32);  // of 16 connections, each with two links
  }
}
