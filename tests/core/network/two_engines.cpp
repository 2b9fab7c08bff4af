// The two engines are each other's oracle where both can run: pinned paths, lossless, acknowledgements as delay.
#include <catch2/catch.hpp>
#include <map>

#include "core/base/hash.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/per_packet/network.hpp"
#include "tests/core/network/fat_tree_runs.hpp"
#include "tests/core/network/network_problems.hpp"

namespace {

using namespace manyworlds::core;
using namespace manyworlds::core::network;

struct Arrival {
  Time at;
  std::uint32_t route;
  std::int64_t bytes;
};

/// Completion of each transfer, and when the last trace of all was gone.
std::map<FlowId, Time> play(Flows& flows, const Graph& graph, const std::vector<Route>& routes,
                            const std::vector<Arrival>& arrivals) {
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) flows.add_link(spec_of(graph, link));
  for (const Route& route : routes) flows.add_route(route);
  flows.set_tie_order({0});
  std::map<FlowId, Time> ends;
  std::vector<FlowId> finished;
  for (std::size_t next = 0; next < arrivals.size() || ends.size() < arrivals.size();) {
    for (; next < arrivals.size() && arrivals[next].at == flows.now(); ++next)
      flows.start({0, static_cast<std::uint32_t>(next)}, arrivals[next].route, arrivals[next].bytes);
    finished.clear();
    flows.advance(next < arrivals.size() ? arrivals[next].at : kNever, finished);
    for (const FlowId id : finished) ends[id] = flows.now();
  }
  return ends;
}

}  // namespace

TEST_CASE(
    "the per-packet engine gives the picoseconds of the event-driven one on 350 drawn problems of all transports") {
  Counters seen;
  const std::vector<std::string> kinds = manyworlds::tests::transport_kinds();
  for (std::uint64_t seed = 1; seed <= 350; ++seed) {
    const auto draw = [&](std::uint64_t number, std::uint64_t below) {
      return static_cast<std::uint32_t>(splitmix64(seed * 1'000 + number) % below);
    };
    const auto graph = k_ary_tree(4);
    for (std::uint32_t i = 0; i < graph->links.size(); i += 2)  // cables differ in rate and length
      for (const std::uint32_t link : {i, i + 1}) {
        graph->links[link].bits_per_second = 100'000'000'000 * (1 + draw(500 + i, 4));
        graph->links[link].latency_ps = 200'000 + 1'000 * draw(700 + i, 800);
      }
    Transport transport;
    transport.kind = kinds[seed % kinds.size()];
    transport.routing = Routing::ecmp_hash;
    transport.window_bytes = 4160 * (1 + draw(1, 200));
    transport.pfc_xoff_bytes = 4160 * (5 + draw(2, 40));
    transport.pfc_xon_bytes = transport.pfc_xoff_bytes / 2;
    transport.ecn_kmin_bytes = 4160 * (1 + draw(3, 5));
    transport.ecn_kmax_bytes = 4160 * (8 + draw(4, 20));
    Router router(graph, transport.routing, seed);
    std::vector<Route> routes;
    std::vector<Arrival> arrivals;
    Time at = 0;
    for (std::uint32_t i = 0; i < 2 + draw(5, 20); ++i) {
      const std::uint32_t destination = draw(10 + 5 * i, draw(6, 2) == 0 ? 3 : 16);
      routes.push_back(router.route((destination + 1 + draw(11 + 5 * i, 15)) % 16, destination, i));
      if (draw(12 + 5 * i, 3) == 0) at += draw(13 + 5 * i, 20'000'000);
      arrivals.push_back({at, i, draw(14 + 5 * i, 600'000)});
    }
    const auto first = make_plain_flows(transport);
    const auto second = make_per_packet_flows(transport, graph);
    INFO("seed " << seed << ", " << transport.kind);
    const auto expected = play(*first, *graph, routes, arrivals);
    REQUIRE(play(*second, *graph, routes, arrivals) == expected);
    CHECK(second->counters().link_hops == first->counters().link_hops);
    CHECK(second->counters().ecn_marks == first->counters().ecn_marks);
    CHECK(second->counters().pauses == first->counters().pauses);
    seen += second->counters();
  }
  CHECK(seen.ecn_marks > 1'000);  // the draws do reach marking and pausing
  CHECK(seen.pauses > 1'000);
}
