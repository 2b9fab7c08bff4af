// Routes against the plain oracle, on graphs that no topology would build.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>

#include "core/base/error.hpp"
#include "tests/core/network/plain_router.hpp"

namespace {

using namespace manyworlds::core::network;

/// GPUs, scale-up and network switches in any number, cabled at random: in islands, doubly, GPU to GPU, or not at all;
/// links of any length and order, and GPUs that relay or do not.
Graph random_graph(std::mt19937& draw) {
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(draw() % bound); };
  Graph graph;
  graph.gpus_relay = below(3) == 0;
  const std::uint32_t gpus = 1 + below(9), inner = below(4), outer = below(9);
  for (std::uint32_t i = 0; i < gpus; ++i) graph.add_vertex(VertexKind::gpu, fmt::format("gpu{}", i));
  for (std::uint32_t i = 0; i < inner; ++i) graph.add_vertex(VertexKind::scale_up_switch, fmt::format("inner{}", i));
  for (std::uint32_t i = 0; i < outer; ++i) graph.add_vertex(VertexKind::network_switch, fmt::format("outer{}", i));
  const auto all = static_cast<std::uint32_t>(graph.vertices.size());
  for (std::uint32_t cables = all > 1 ? below(4 * all) : 0; cables > 0; --cables) {
    const std::uint32_t a = below(all), b = below(all);
    if (a == b) continue;
    graph.add_cable({a, b, below(3) == 0 ? LinkKind::scale_up : LinkKind::network, 1'000, 1,
                     static_cast<std::uint8_t>(below(3)), static_cast<std::uint8_t>(1 + below(2))});
    if (below(8) == 0) graph.links.pop_back();  // one direction only
  }
  return graph;
}

}  // namespace

TEST_CASE("routes on random graphs are those of one Dijkstra per destination") {
  std::mt19937 draw(20261121);
  std::size_t with_paths = 0;
  for (int round = 0; round < 1'000; ++round) {
    const Graph graph = random_graph(draw);
    INFO("round " << round << ": " << graph.gpus << " GPUs, " << graph.vertices.size() << " vertices, "
                  << graph.links.size() << " links");
    for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash})
      REQUIRE(tests::differing_routes(graph, routing, static_cast<std::uint64_t>(round)).empty());
    Router router(std::make_shared<const Graph>(graph), Routing::ecmp_hash, 1);
    try {
      with_paths += graph.gpus > 1 && !router.route(0, graph.gpus - 1, 0).empty();
    } catch (const manyworlds::core::InputError&) {
    }
  }
  CHECK(with_paths > 500);  // the draw is not mostly of graphs in which nobody reaches anybody
}
