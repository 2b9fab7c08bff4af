// How packets spread over equally short paths, against closed forms.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/network/fabric/path_spread.hpp"
#include "core/network/fabric/router.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;

namespace {

constexpr std::int64_t kRate = 400'000'000'000;

/// Leaves with one GPU each, and spines that every leaf has a cable to, but for the cable of leaf 0 and spine 0 if that
/// is down.
std::shared_ptr<Graph> tree(std::uint32_t leaves, std::uint32_t spines, bool is_broken) {
  auto graph = std::make_shared<Graph>();
  for (std::uint32_t i = 0; i < leaves; ++i) graph->add_vertex(VertexKind::gpu, "gpu");
  for (std::uint32_t i = 0; i < leaves + spines; ++i) graph->add_vertex(VertexKind::network_switch, "switch");
  for (std::uint32_t i = 0; i < leaves; ++i) graph->add_cable(i, leaves + i, LinkKind::network, kRate, 1);
  for (std::uint32_t i = 0; i < leaves; ++i)
    for (std::uint32_t spine = 0; spine < spines; ++spine)
      if (!is_broken || i + spine > 0) graph->add_cable(leaves + i, 2 * leaves + spine, LinkKind::network, kRate, 1);
  return graph;
}

}  // namespace

TEST_CASE("packets between two GPUs spread evenly over the paths that are left") {
  for (const std::uint32_t spines : {2u, 3u, 8u, 64u})
    for (const bool is_broken : {false, true}) {
      CAPTURE(spines, is_broken);
      PathSpreads spreads(tree(3, spines, is_broken));
      for (const auto& [source, destination] : {std::pair{0u, 1u}, {1u, 0u}, {1u, 2u}}) {
        const std::uint32_t ways = spines - (is_broken && (source == 0 || destination == 0));
        const Spread spread = spreads.between(source, destination);
        CHECK(spread.first == SpreadHop{{2 * source, kAllPackets}});
        const std::vector<SpreadHop>& middle = spreads.middle(spread.middle);
        REQUIRE(middle.size() == 2);
        for (const SpreadHop& hop : middle) {
          REQUIRE(hop.size() == ways);
          for (const LinkShare& one : hop) CHECK(one.share == kAllPackets / ways);
        }
        REQUIRE(spread.last.size() == 1);
        CHECK(spread.last[0].link == 2 * destination + 1);
        CHECK(spread.last[0].share == kAllPackets / ways * ways);
      }
    }
}

TEST_CASE("a switch that is reached over more links passes on more packets") {
  // Of the two ways up, one has a cable to each of the two switches above it, the other a cable to one of them.
  auto graph = std::make_shared<Graph>();
  for (int i = 0; i < 2; ++i) graph->add_vertex(VertexKind::gpu, "gpu");
  for (int i = 2; i < 8; ++i) graph->add_vertex(VertexKind::network_switch, "switch");
  const auto cable = [&](std::uint32_t a, std::uint32_t b) {
    return graph->add_cable(a, b, LinkKind::network, kRate, 1);
  };
  cable(0, 2), cable(2, 3), cable(2, 4);
  const std::uint32_t both[] = {cable(3, 5), cable(3, 6)}, one = cable(4, 5);
  const std::uint32_t down[] = {cable(5, 7), cable(6, 7)};
  cable(7, 1);
  PathSpreads spreads(graph);
  const std::vector<SpreadHop> middle = spreads.middle(spreads.between(0, 1).middle);
  REQUIRE(middle.size() == 3);
  CHECK(middle[1] == SpreadHop{{both[0], kAllPackets / 4}, {both[1], kAllPackets / 4}, {one, kAllPackets / 2}});
  CHECK(middle[2] == SpreadHop{{down[0], kAllPackets / 4 * 3}, {down[1], kAllPackets / 4}});
}

TEST_CASE("GPUs that hang on the same two switches share what lies between") {
  auto graph = tree(2, 4, false);
  PathSpreads spreads(graph);
  const Spread there = spreads.between(0, 1), again = spreads.between(0, 1), back = spreads.between(1, 0);
  CHECK(there.middle == again.middle);
  CHECK(there.middle != back.middle);
  CHECK(spreads.middles() == 3);  // with the empty one
}

TEST_CASE("one of the fastest paths represents those of packets that spread") {
  auto graph = tree(2, 4, false);
  for (Link& link : graph->links)
    if (link.from == 6 || link.to == 6) link.bits_per_second = 2 * kRate;  // of spine 2
  Router router(graph, Routing::spray, 1);
  const Route route = router.route(0, 1, 0);
  REQUIRE(route.size() == 4);
  CHECK(graph->links[route[1]].to == 6);
}
