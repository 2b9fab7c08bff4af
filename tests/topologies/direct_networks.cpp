// Networks of routers against their closed forms: cables, bisection, diameter, and the order in which routes take
// dimensions.
#include <catch2/catch.hpp>

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"
#include "tests/topologies/graph_facts.hpp"

namespace {

using namespace manyworlds::core::network;
using namespace manyworlds::topologies;
using manyworlds::core::InputError;
using manyworlds::core::OptionSet;
using manyworlds::core::compute::ScaleUp;
using tests::kNic;

/// One GPU per node, so that a router is a GPU's.
Graph built(const std::string& name, const OptionSet& options, std::int64_t nodes, std::int64_t gpus_per_node = 1) {
  return tests::build(name, options, tests::fabric_spec_of(nodes, gpus_per_node, ScaleUp::nvswitch));
}

std::string refusal(const std::string& name, const OptionSet& options, std::int64_t nodes) {
  try {
    built(name, options, nodes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::int64_t whole(std::int64_t value) {
  return value;
}

struct Lengths {
  std::size_t longest = 0;
  std::size_t sum = 0;
};

Lengths lengths_of(const std::vector<Route>& routes) {
  Lengths lengths;
  for (const Route& route : routes)
    lengths.longest = std::max(lengths.longest, route.size()), lengths.sum += route.size();
  return lengths;
}

bool in_order(const Graph& graph, const Route& route) {
  for (std::size_t i = 1; i + 2 < route.size(); ++i)  // the first and the last link are the GPUs' own
    if (graph.links[route[i]].order > graph.links[route[i + 1]].order) return false;
  return true;
}

}  // namespace

TEST_CASE("a k-ary n-cube has n k^n cables, 2 k^(n-1) of them across its middle, and n k/2 steps at most") {
  const Graph cube = built("torus", {{"dimensions", whole(3)}}, 64);
  CHECK(tests::trunk_cables(cube) == 3 * 64);
  CHECK(tests::bisection(cube, [](std::uint32_t gpu) { return gpu < 32; }) == 2 * 16 * kNic);
  CHECK(lengths_of(tests::all_routes(cube, Routing::ecmp_hash)).longest == 3 * 2 + 2);
  const Graph plane = built("torus", {{"x", whole(6)}, {"cables", whole(3)}}, 24);  // 6 x 4
  CHECK(tests::trunk_cables(plane) == 2 * 24 * 3);
  CHECK(tests::bisection(plane, [](std::uint32_t gpu) { return gpu < 12; }) == 12 * kNic);  // by the NICs of 12 GPUs
  CHECK(lengths_of(tests::all_routes(plane, Routing::ecmp_hash)).longest == 3 + 2 + 2);
}

TEST_CASE("a row of two routers in a torus has one cable, not two") {
  CHECK(tests::trunk_cables(built("torus", {{"x", whole(2)}, {"y", whole(2)}}, 4)) == 4);
  CHECK(tests::trunk_cables(built("torus", {{"x", whole(3)}, {"y", whole(1)}}, 3)) == 3);
}

TEST_CASE("a mesh has (k-1) k^(n-1) cables a dimension, k^(n-1) across its middle, and k-1 steps a dimension at most") {
  const Graph box = built("mesh", {{"dimensions", whole(3)}}, 64);
  CHECK(tests::trunk_cables(box) == 3 * 3 * 16);
  CHECK(tests::bisection(box, [](std::uint32_t gpu) { return gpu < 32; }) == 16 * kNic);
  CHECK(lengths_of(tests::all_routes(box, Routing::ecmp_hash)).longest == 3 * 3 + 2);
  const Graph plane = built("mesh", {{"x", whole(5)}}, 15);
  CHECK(tests::trunk_cables(plane) == 4 * 3 + 5 * 2);
}

TEST_CASE("a hypercube has d 2^(d-1) cables, half of its routers across, and pairs d/2 steps apart on average") {
  const Graph cube = built("hypercube", {}, 32);
  CHECK(tests::trunk_cables(cube) == 5 * 16);
  CHECK(tests::bisection(cube, [](std::uint32_t gpu) { return gpu < 16; }) == 16 * kNic);
  const auto routes = tests::all_routes(cube, Routing::ecmp_hash);
  CHECK(lengths_of(routes).longest == 5 + 2);
  CHECK(lengths_of(routes).sum == 32 * 5 * 16 + 2 * 32 * 31);  // each router: sum over distances of k C(5, k) = 5 2^4
}

TEST_CASE("routes of meshes, tori, hypercubes and BCubes take one dimension after another") {
  for (const auto& [name, options, nodes] : {std::tuple<std::string, OptionSet, std::int64_t>{"mesh", {}, 20},
                                             {"mesh", {{"dimensions", whole(3)}}, 36},
                                             {"torus", {}, 36},
                                             {"torus", {{"dimensions", whole(3)}}, 64},
                                             {"hypercube", {}, 32},
                                             {"bcube", {{"levels", whole(3)}}, 27}})
    for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash}) {
      INFO(name);
      const Graph graph = built(name, options, nodes);
      const auto routes = tests::all_routes(graph, routing);
      CHECK(std::all_of(routes.begin(), routes.end(), [&](const Route& route) { return in_order(graph, route); }));
      if (name != "torus") CHECK_FALSE(tests::waits_in_cycle(graph, routes));
    }
}

TEST_CASE("without the order of dimensions the routes of a mesh wait for each other in a cycle") {
  Graph graph = built("mesh", {}, 16);
  for (Link& link : graph.links) link.order = 0;
  CHECK(tests::waits_in_cycle(graph, tests::all_routes(graph, Routing::ecmp_hash)));
}

TEST_CASE("a ring of three routers has no detours and so no cycle, one of four has") {
  const Graph three = built("torus", {{"x", whole(3)}, {"y", whole(1)}}, 3);
  CHECK_FALSE(tests::waits_in_cycle(three, tests::all_routes(three, Routing::ecmp_hash)));
  const Graph four = built("torus", {{"x", whole(4)}, {"y", whole(1)}, {"router_hosts", whole(8)}}, 32);
  CHECK(tests::waits_in_cycle(four, tests::all_routes(four, Routing::ecmp_hash)));
}

TEST_CASE("opposite corners of a hypercube of 2^14 hosts are 14 cables and two host links apart") {
  const auto graph = std::make_shared<const Graph>(built("hypercube", {}, 1 << 14));
  CHECK(Router(graph, Routing::ecmp_hash, 1).route(0, (1 << 14) - 1, 0).size() == 16);
}

TEST_CASE("BCube has n^(k+1) servers, (k+1) n^k switches and at most k+1 server hops, as Guo et al. count") {
  const Graph small = built("bcube", {}, 16);  // BCube_1 of 4-port switches, figure 1 of the paper
  CHECK(tests::count(small, "server") == 16);
  CHECK(tests::count(small, "level0_") == 4);
  CHECK(tests::count(small, "level1_") == 4);
  CHECK(tests::trunk_cables(small) == 2 * 16);
  const auto routes = tests::all_routes(small, Routing::ecmp_hash);
  CHECK(lengths_of(routes).longest == 2 + 2 * 2);
  // Of 15 others, 6 differ in one digit (one switch between) and 9 in two.
  CHECK(lengths_of(routes).sum == 16 * (6 * 4 + 9 * 6));
  const Graph large = built("bcube", {{"levels", whole(4)}, {"switch_ports", whole(8)}}, 4096);
  CHECK(tests::count(large, "level") == 2048);
  CHECK(tests::trunk_cables(large) == 4 * 4096);
}

TEST_CASE("a full mesh has a cable per pair of routers and crosses at most one") {
  const Graph graph = built("full_mesh", {{"router_hosts", whole(4)}, {"cables", whole(2)}}, 24);
  CHECK(tests::count(graph, "router") == 6);
  CHECK(tests::trunk_cables(graph) == 2 * 15);
  CHECK(lengths_of(tests::all_routes(graph, Routing::ecmp_hash)).longest == 3);
  CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 4; }) == 4 * kNic);
  CHECK(tests::bisection(graph, [](std::uint32_t gpu) { return gpu < 12; }) == 12 * kNic);
}

TEST_CASE("sizes that do not make the cluster, and paths too long for a packet, are refused with what would be right") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("torus", {{"x", whole(5)}}, 24), Contains("24 routers") && Contains("4 x 6 is valid"));
  CHECK_THAT(refusal("torus", {{"x", whole(4)}, {"y", whole(4)}}, 24), Contains("4 x 6 is valid"));
  CHECK_THAT(refusal("torus", {{"z", whole(2)}}, 24), Contains("torus.dimensions: 3"));
  CHECK_THAT(refusal("mesh", {{"z", whole(2)}}, 24), Contains("mesh.dimensions: 3"));
  CHECK_THAT(refusal("torus", {{"x", whole(1)}}, 400), Contains("paths of 202 links") && Contains("router_hosts"));
  CHECK_THAT(refusal("mesh", {{"x", whole(1)}}, 400), Contains("paths of 401 links"));
  CHECK_THAT(refusal("hypercube", {}, 24), Contains("16 and 32 are"));
  CHECK_THAT(refusal("bcube", {}, 24), Contains("16 or 25 servers"));
  CHECK_THAT(refusal("bcube", {{"switch_ports", whole(4)}}, 25), Contains("not 4^2"));
  CHECK_THAT(refusal("full_mesh", {}, 10'000), Contains("cables") && Contains("too many"));
  CHECK_THAT(refusal("hpn",
                     {{"segment_nodes", whole(1)},
                      {"pod_segments", whole(1)},
                      {"aggregations", whole(4096)},
                      {"core_uplinks", whole(4096)}},
                     2),
             Contains("16777216 plane0_core switches are too many"));
}
