// Fabrics of rails, planes and groups against the figures of their papers, and where their routes go.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"
#include "tests/topologies/graph_facts.hpp"

namespace {

using namespace manyworlds::core::network;
using namespace manyworlds::topologies;
using manyworlds::core::InputError;
using manyworlds::core::OptionSet;
using manyworlds::core::compute::ScaleUp;
using tests::kNic;

Graph built(const std::string& name, const OptionSet& options, std::int64_t nodes, std::int64_t gpus_per_node) {
  return tests::build(name, options, tests::fabric_spec_of(nodes, gpus_per_node, ScaleUp::nvswitch));
}

std::int64_t whole(std::int64_t value) {
  return value;
}

std::int64_t globals_on(const Graph& graph, const Route& route, std::int64_t group_routers) {
  std::int64_t crossed = 0;
  for (const std::uint32_t link : route) {
    const Link& one = graph.links[link];
    if (one.from < graph.gpus || one.to < graph.gpus) continue;
    const auto group = [&](std::uint32_t router) { return std::stoll(graph.names[router].substr(6)) / group_routers; };
    crossed += group(one.from) != group(one.to);
  }
  return crossed;
}

}  // namespace

TEST_CASE("rail-only has a switch per rail, a cable per GPU, and crosses rails in the sender's node") {
  const Graph graph = built("rail_only", {}, 4, 8);
  CHECK(tests::count(graph, "rail") == 8);
  CHECK(tests::trunk_cables(graph) == 0);
  Router router(std::make_shared<const Graph>(graph), Routing::destination_mod_k, 1);
  using Names = std::vector<std::string>;
  CHECK(tests::names_on(graph, router.route(3, 27, 0)) == Names{"gpu3", "rail3", "gpu27"});
  CHECK(tests::names_on(graph, router.route(3, 5, 0)) == Names{"gpu3", "nvswitch0", "gpu5"});
  CHECK(tests::names_on(graph, router.route(3, 29, 0)) == Names{"gpu3", "nvswitch0", "gpu5", "rail5", "gpu29"});
  for (std::uint32_t from = 0; from < 8; ++from)
    for (std::uint32_t to = 8; to < 32; ++to) {
      const Route route = router.route(from, to, 0);
      REQUIRE(route.size() == (from % 8 == to % 8 ? 2 : 4));
      CHECK(graph.links[route[route.size() - 2]].from == to % 8);  // it leaves by the NIC on the receiver's rail
    }
}

TEST_CASE("rail-only in a node without switches relays over the peer's own cable") {
  const Graph graph = tests::build("rail_only", {}, tests::fabric_spec_of(2, 4, ScaleUp::full_mesh));
  Router router(std::make_shared<const Graph>(graph), Routing::ecmp_hash, 1);
  CHECK(tests::names_on(graph, router.route(0, 6, 9)) == std::vector<std::string>{"gpu0", "gpu2", "rail2", "gpu6"});
}

TEST_CASE("a relayed transfer takes the closed form of four store-and-forward links, paced by the NIC") {
  const Graph graph = built("rail_only", {}, 4, 8);
  const Transport transport;
  const auto flows = make_plain_flows(transport);
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) flows->add_link(spec_of(graph, link));
  flows->set_tie_order({0});
  Router router(std::make_shared<const Graph>(graph), transport.routing, 0);
  const std::int64_t packets = 50, size = transport.payload_bytes + transport.header_bytes;
  flows->start({0, 0}, flows->add_route(router.route(3, 29, 0)), packets * transport.payload_bytes);
  std::vector<FlowId> finished;
  flows->advance(manyworlds::core::kNever, finished);
  const auto inside = manyworlds::core::serialization_ps(size, tests::kScaleUp);
  const auto outside = manyworlds::core::serialization_ps(size, kNic);
  CHECK(flows->now() == 2 * inside + 2 * 500'000 + 2 * outside + 2 * 1'000'000 + (packets - 1) * outside);
  CHECK(flows->counters().link_hops == 4 * packets);
}

TEST_CASE("a GPU relays only what came over its scale-up links, and only where the fabric says so") {
  Graph graph = built("rail_only", {}, 2, 2);
  graph.gpus_relay = false;
  Router router(std::make_shared<const Graph>(graph), Routing::ecmp_hash, 1);
  CHECK(router.route(0, 2, 0).size() == 2);
  CHECK_THROWS_AS(router.route(0, 3, 0), InputError);
}

TEST_CASE("a segment of HPN has 1,024 GPUs on 16 ToRs, and a pod of 15 of them 120 aggregation switches") {
  const Graph graph = built("hpn", {}, 15 * 128, 8);
  CHECK(graph.gpus == 15'360);
  CHECK(tests::count(graph, "plane0_tor") == 15 * 8);
  CHECK(tests::count(graph, "plane1_tor") == 15 * 8);
  CHECK(tests::count(graph, "plane0_agg") + tests::count(graph, "plane1_agg") == 120);
  CHECK(tests::count(graph, "plane0_core") == 0);
  CHECK(tests::trunk_cables(graph) == 240 * 60);
  std::vector<std::int64_t> down(graph.vertices.size()), up(graph.vertices.size()), ports(graph.vertices.size());
  for (const Link& link : graph.links) {
    if (link.kind != LinkKind::network || link.from < graph.gpus) continue;
    ++ports[link.from];
    (link.to < graph.gpus ? down : up)[link.from] += link.bits_per_second;
  }
  for (std::uint32_t vertex = graph.gpus; vertex < graph.vertices.size(); ++vertex) {
    if (graph.names[vertex].starts_with("plane0_tor"))
      CHECK((ports[vertex] == 128 + 60 && down[vertex] * 60 == up[vertex] * 64));
    if (graph.names[vertex].starts_with("plane0_agg")) CHECK(ports[vertex] == 120);
  }
}

TEST_CASE("pods of HPN meet in cores with 8 of an aggregation switch's 128 ports, and planes meet nowhere") {
  const Graph graph = built(
      "hpn",
      {{"segment_nodes", whole(2)}, {"pod_segments", whole(2)}, {"aggregations", whole(4)}, {"core_uplinks", whole(2)}},
      8, 2);  // 4 segments, 2 pods
  CHECK(tests::count(graph, "plane0_core") == 4 * 2);
  CHECK(tests::trunk_cables(graph) == 2 * (8 * 4 + 2 * 4 * 2));
  for (const Link& link : graph.links)
    if (link.from >= graph.gpus && link.to >= graph.gpus && link.kind == LinkKind::network)
      CHECK(graph.names[link.from].substr(0, 6) == graph.names[link.to].substr(0, 6));
  std::set<std::string> first;  // routes use both ports of a NIC
  for (const Route& route : tests::all_routes(graph, Routing::destination_mod_k))
    if (graph.links[route[0]].from == 0 && graph.links[route[0]].kind == LinkKind::network)
      first.insert(graph.names[graph.links[route[0]].to].substr(0, 6));
  CHECK(first == std::set<std::string>{"plane0", "plane1"});
}

TEST_CASE("a balanced dragonfly of p = 2 has the 36 routers, 9 groups and 72 hosts of Kim et al., figure 5") {
  const Graph graph = built("dragonfly", {}, 72, 1);
  CHECK(tests::count(graph, "router") == 36);
  CHECK(tests::trunk_cables(graph) == 9 * 6 + 9 * 8 / 2);
  for (const Route& route : tests::all_routes(graph, Routing::ecmp_hash)) {
    const std::uint32_t from = graph.links[route.front()].from, to = graph.links[route.back()].to;
    CHECK(route.size() <= 5);
    CHECK(globals_on(graph, route, 4) == (from / 8 != to / 8));  // minimal: one global cable, no more
  }
}

TEST_CASE("the dragonfly of 1,056 hosts that Kim et al. simulate is the balanced one of p = 4") {
  const Graph graph = built("dragonfly", {}, 1056, 1);
  CHECK(tests::count(graph, "router") == 33 * 8);
  CHECK(tests::trunk_cables(graph) == 33 * 28 + 33 * 32 / 2);
  const Graph more = built("dragonfly", {}, 1057, 1);  // one more host takes p = 5
  CHECK(tests::count(more, "router") % 10 == 0);
}

TEST_CASE("fewer groups than a dragonfly can hold are joined by several cables a pair, on their own latency") {
  const Graph graph =
      built("dragonfly", {{"router_hosts", whole(2)}, {"global_latency_ps", whole(3'000'000)}}, 24, 1);  // 3 groups
  std::int64_t slow = 0;
  for (const Link& link : graph.links) slow += link.latency_ps == 3'000'000;
  CHECK(slow == 2 * 3 * (8 / 2));
}

TEST_CASE("a balanced dragonfly+ has m^2 (m^2 + 1) hosts and paths of at most five links") {
  for (const std::int64_t m : {1, 2, 3}) {
    const std::int64_t hosts = m * m * (m * m + 1);
    const Graph graph = built("dragonfly_plus", {}, hosts, 1);
    CHECK(tests::count(graph, "leaf") == m * (m * m + 1));
    CHECK(tests::count(graph, "spine") == m * (m * m + 1));
    CHECK(tests::trunk_cables(graph) == m * m * (m * m + 1) + m * m * (m * m + 1) / 2);
    std::vector<std::int64_t> ports(graph.vertices.size());
    for (const Link& link : graph.links) ++ports[link.from];
    for (std::size_t vertex = graph.gpus; vertex < graph.vertices.size(); ++vertex) CHECK(ports[vertex] == 2 * m);
    for (const Route& route : tests::all_routes(graph, Routing::ecmp_hash)) CHECK(route.size() <= 5);
  }
}

TEST_CASE("groups with too few global ports are refused with how many would do") {
  CHECK_THROWS_WITH(
      built("dragonfly", {{"router_hosts", whole(1)}, {"group_routers", whole(2)}, {"global_links", whole(1)}}, 16, 1),
      Catch::Contains("dragonfly: a group has 2 global ports, but 7 other groups") &&
          Catch::Contains("dragonfly.global_links to 4"));
}

TEST_CASE("a scale-up domain of 72 GPUs on 18 switches gives every GPU a cable to each, which share its rate") {
  FabricSpec spec = tests::fabric_spec_of(2, 72, ScaleUp::nvswitch);
  spec.scale_up_planes = 18;
  const Graph graph = tests::build("rail_optimized", {}, spec);
  CHECK(tests::count(graph, "nvswitch") == 2 * 18);
  std::int64_t cables = 0;
  for (const Link& link : graph.links)
    if (link.from == 100 && link.kind == LinkKind::scale_up) cables += link.bits_per_second == tests::kScaleUp / 18;
  CHECK(cables == 18);
  // A permutation inside the domain finds a switch of its own for every sender in turn.
  Router router(std::make_shared<const Graph>(graph), Routing::destination_mod_k, 1);
  std::set<std::string> used;
  for (std::uint32_t to = 1; to < 19; ++to) used.insert(tests::names_on(graph, router.route(0, to, 0))[1]);
  CHECK(used.size() == 18);
}
