// Routes on every registered fabric against the plain oracle.
#include <catch2/catch.hpp>
#include <random>

#include "core/base/error.hpp"
#include "core/network/fabric/forwarding_tables.hpp"
#include "tests/core/network/plain_router.hpp"
#include "tests/topologies/graph_facts.hpp"
#include "topologies/parts/shared_nics.hpp"

using namespace manyworlds::core::network;
using manyworlds::core::compute::ScaleUp;
using manyworlds::topologies::FabricSpec;
using manyworlds::topologies::Topology;

TEST_CASE("routes on every fabric are those of one Dijkstra per destination") {
  for (const Topology& topology : manyworlds::topologies::tests::fabrics())
    for (const ScaleUp scale_up : {ScaleUp::nvswitch, ScaleUp::full_mesh}) {
      const FabricSpec spec = manyworlds::topologies::tests::fabric_spec_of(16, 4, scale_up);
      const Graph graph = topology.build({}, spec);
      INFO(topology.name << (scale_up == ScaleUp::nvswitch ? ", NVSwitch" : ", full mesh"));
      CHECK(tests::differing_routes(graph, Routing::destination_mod_k, 7).empty());
      CHECK(tests::differing_routes(graph, Routing::ecmp_hash, 7).empty());
    }
}

namespace {

/// A fabric as large as drawn, sometimes with its small options, shared NICs or cables that are down.
Graph draw_fabric(const Topology& topology, std::mt19937_64& random, std::int64_t max_nodes) {
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random() % bound); };
  for (;;) {
    constexpr ScaleUp kScaleUps[] = {ScaleUp::nvswitch, ScaleUp::full_mesh, ScaleUp::pcie};
    FabricSpec spec = manyworlds::topologies::tests::fabric_spec_of(1 + below(static_cast<std::uint64_t>(max_nodes)),
                                                                    std::int64_t{1} << below(4), kScaleUps[below(3)]);
    spec.host_bits_per_second = 100'000'000'000;
    if (spec.gpus_per_node > 1 && below(4) == 0) spec.shared_nics = spec.gpus_per_node / 2;
    const auto options = below(2) == 0 ? topology.traits.small_options : manyworlds::core::OptionSet{};
    const std::int64_t faults = below(3) == 0 ? below(6) : 0;
    try {
      Graph graph = manyworlds::topologies::build_fabric(topology, options, spec);
      for (std::int64_t i = 0; i < faults && graph.links.size() > 2; ++i) {
        const auto cable = static_cast<std::ptrdiff_t>(random() % (graph.links.size() / 2) * 2);
        graph.links.erase(graph.links.begin() + cable, graph.links.begin() + cable + 2);
      }
      return graph;
    } catch (const manyworlds::core::InputError&) {  // this fabric exists in other sizes
    }
  }
}

/// The route, or nothing where the router refuses.
Route route_or_nothing(Router& router, std::uint32_t source, std::uint32_t destination, std::uint64_t entropy) {
  try {
    return router.route(source, destination, entropy);
  } catch (const manyworlds::core::InputError&) {
    return {};
  }
}

/// The links that a packet may take, in the order of the forwarding tables.
std::vector<std::uint32_t> links_to_take(ForwardingTables& tables, std::uint32_t source, std::uint32_t destination) {
  try {
    return tables.walk(source, destination, [](std::uint32_t, std::span<const std::uint32_t>) {});
  } catch (const manyworlds::core::InputError&) {
    return {};
  }
}

/// Compares every way between two GPUs with and without the structure of the fabric: of all pairs, or of `pairs` drawn.
void require_equal_routes(const std::shared_ptr<const Graph>& graph, std::mt19937_64& random, std::uint32_t pairs) {
  for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash}) {
    Router structure(graph, routing, 5), oracle(graph, routing, 5, DistanceMethod::tables);
    const std::uint32_t all = graph->gpus * graph->gpus;
    for (std::uint32_t i = 0; i < std::min(all, pairs); ++i) {
      const auto pair = static_cast<std::uint32_t>(all <= pairs ? i : random() % all);
      const std::uint32_t source = pair / graph->gpus, destination = pair % graph->gpus;
      if (source == destination) continue;
      REQUIRE(route_or_nothing(structure, source, destination, i) == route_or_nothing(oracle, source, destination, i));
    }
  }
  ForwardingTables structure(graph), oracle(graph, DistanceMethod::tables);  // spray, adaptive and flowlet
  for (std::uint32_t i = 0; i < 50 && graph->gpus > 1; ++i) {
    const auto source = static_cast<std::uint32_t>(random() % graph->gpus);
    const auto destination = static_cast<std::uint32_t>(random() % graph->gpus);
    if (source != destination)
      REQUIRE(links_to_take(structure, source, destination) == links_to_take(oracle, source, destination));
  }
}

}  // namespace

TEST_CASE("the structure of a fabric gives the routes that a table for every switch gives") {
  std::mt19937_64 random(20261125);
  for (const Topology& topology : manyworlds::topologies::tests::fabrics())
    for (std::uint32_t round = 0; round < 24; ++round) {
      const bool small = round % 4 != 3;
      const auto graph = std::make_shared<const Graph>(draw_fabric(topology, random, small ? 12 : 256));
      INFO(topology.name << ", round " << round << ", " << graph->gpus << " GPUs, " << graph->links.size() << " links");
      require_equal_routes(graph, random, small ? 10'000 : 300);
    }
}

TEST_CASE("a fabric of interchangeable switches has few classes of them, a grid none") {
  FabricSpec spec = manyworlds::topologies::tests::fabric_spec_of(512, 8, ScaleUp::nvswitch);
  const auto graph = [&](const char* name, const manyworlds::core::OptionSet& options) {
    return manyworlds::topologies::tests::build(name, options, spec);
  };
  // Two tiers: all leaves, all spines, and all that no transit crosses, which is the GPUs and the nodes' switches.
  CHECK(Distances(graph("fat_tree", {})).classes() == 3);
  CHECK(Distances(graph("rail_optimized", {})).classes() == 3);
  // Three tiers: of the 8 pods of 16 leaves the leaves are alike, and of the 32 planes the cores.
  CHECK(Distances(graph("fat_tree", {{"tiers", std::int64_t{3}}, {"pod_leaves", std::int64_t{16}}})).classes() ==
        8 + 8 * 32 + 32 + 1);
  spec.nodes = 256;
  for (const char* name : {"torus", "mesh", "hypercube", "full_mesh"}) CHECK(Distances(graph(name, {})).classes() == 1);
}
