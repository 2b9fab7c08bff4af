// What switches hash connections with, and how next hops are weighed: against closed forms, and the plain oracle.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "core/base/error.hpp"
#include "tests/core/network/plain_router.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;

namespace {

constexpr std::int64_t kRate = 400'000'000'000;
constexpr std::uint64_t kConnections = 8'192;

/// Two pods of two leaves with a GPU each. Every leaf has a cable to each of `middle` switches of its pod, and the i-th
/// of these one to each of the `top` switches of plane i.
struct ThreeTiers {
  std::uint32_t middle, top;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();

  ThreeTiers(std::uint32_t middle_switches, std::uint32_t top_switches) : middle(middle_switches), top(top_switches) {
    for (std::uint32_t i = 0; i < 4; ++i) graph->add_vertex(VertexKind::gpu, fmt::format("gpu{}", i));
    for (std::uint32_t i = 0; i < 4 + 2 * middle + middle * top; ++i)
      graph->add_vertex(VertexKind::network_switch, fmt::format("switch{}", i));
    for (std::uint32_t i = 0; i < 4; ++i) graph->add_cable({i, 4 + i, LinkKind::network, kRate, 1});
    for (std::uint32_t leaf = 0; leaf < 4; ++leaf)
      for (std::uint32_t i = 0; i < middle; ++i)
        graph->add_cable({4 + leaf, middle_switch(leaf / 2, i), LinkKind::network, kRate, 1});
    for (std::uint32_t pod = 0; pod < 2; ++pod)
      for (std::uint32_t i = 0; i < middle; ++i)
        for (std::uint32_t j = 0; j < top; ++j)
          graph->add_cable({middle_switch(pod, i), 8 + 2 * middle + i * top + j, LinkKind::network, kRate, 1});
  }
  std::uint32_t middle_switch(std::uint32_t pod, std::uint32_t i) const { return 8 + pod * middle + i; }

  /// The links between the upper tiers that connections from GPU 0 to the other pod go up by.
  std::set<std::uint32_t> upper_links(HashSeeds seeds) const {
    Router router(graph, {Routing::ecmp_hash, 1, seeds});
    std::set<std::uint32_t> used;
    for (std::uint64_t connection = 0; connection < kConnections; ++connection)
      used.insert(router.route(0, 2, connection).at(2));
    return used;
  }
};

/// How many of `kConnections` draws with probability `share` are within five standard deviations.
Approx about(double share) {
  const double n = static_cast<double>(kConnections);
  return Approx(n * share).margin(5 * std::sqrt(n * share * (1 - share)) + 1e-9).epsilon(0);
}

}  // namespace

TEST_CASE("one hash function in all tiers leaves 1/gcd of the upper links to what comes from one switch") {
  for (const auto& [middle, top] : {std::pair{4u, 4u}, {8u, 8u}, {4u, 8u}, {8u, 4u}, {4u, 6u}, {3u, 4u}, {2u, 16u}}) {
    CAPTURE(middle, top);
    const ThreeTiers tree(middle, top);
    // Middle switch i has the hashes that are i modulo `middle`; modulo `top` they have top / gcd(middle, top) rests.
    CHECK(tree.upper_links(HashSeeds::same).size() == middle * top / std::gcd(middle, top));
    CHECK(tree.upper_links(HashSeeds::per_hop).size() == middle * top);
    CHECK(tree.upper_links(HashSeeds::per_switch).size() == middle * top);
  }
}

TEST_CASE("switches of one tier decide alike by the seed of their hop, and independently by seeds of their own") {
  const ThreeTiers tree(4, 4);
  const auto decided_alike = [&](HashSeeds seeds) {
    Router router(tree.graph, {Routing::ecmp_hash, 1, seeds});
    std::uint64_t alike = 0;
    for (std::uint64_t connection = 0; connection < kConnections; ++connection) {
      const auto number = [&](std::uint32_t gpu, std::uint32_t to) {  // of the way that the GPU's leaf takes
        return tree.graph->links[router.route(gpu, to, connection).at(1)].to - tree.middle_switch(0, 0);
      };
      alike += number(0, 2) == number(1, 2);
    }
    return static_cast<double>(alike);
  };
  CHECK(decided_alike(HashSeeds::per_hop) == kConnections);
  CHECK(decided_alike(HashSeeds::same) == kConnections);
  CHECK(decided_alike(HashSeeds::per_switch) == about(1.0 / 4));
}

TEST_CASE("next hops are taken in proportion to the rate that they lead on with") {
  // Leaves 0 and 1 with a GPU each, under spines whose cables to them have these shares of the rate.
  const std::vector<std::pair<int, int>> shares{{4, 4}, {2, 4}, {4, 1}, {1, 2}, {0, 4}};  // to leaf 0, to leaf 1
  auto graph = std::make_shared<Graph>();
  for (int i = 0; i < 2; ++i) graph->add_vertex(VertexKind::gpu, "gpu");
  for (std::size_t i = 0; i < 2 + shares.size(); ++i) graph->add_vertex(VertexKind::network_switch, "switch");
  for (std::uint32_t i = 0; i < 2; ++i) graph->add_cable({i, 2 + i, LinkKind::network, kRate, 1});
  for (std::uint32_t spine = 0; spine < shares.size(); ++spine)
    for (const bool second : {false, true})
      if (const int share = second ? shares[spine].second : shares[spine].first; share > 0)
        graph->add_cable({second ? 3u : 2u, 4 + spine, LinkKind::network, kRate / 4 * share, 1});
  double total = 0;
  for (const auto& [first, second] : shares) total += std::min(first, second);
  Router router(graph, {Routing::ecmp_hash, 1, HashSeeds::per_hop, PathWeights::rate});
  for (const bool back : {false, true}) {
    std::map<std::uint32_t, double> counted;
    for (std::uint64_t connection = 0; connection < kConnections; ++connection)
      ++counted[graph->links[router.route(back, !back, connection).at(1)].to - 4];
    for (std::uint32_t spine = 0; spine < shares.size(); ++spine) {
      CAPTURE(back, spine);
      CHECK(counted[spine] == about(std::min(shares[spine].first, shares[spine].second) / total));
    }
  }
}

TEST_CASE("weights by rate change no path where all rates are equal") {
  const ThreeTiers tree(4, 8);
  for (const HashSeeds seeds : {HashSeeds::per_hop, HashSeeds::per_switch, HashSeeds::same}) {
    Router equal(tree.graph, {Routing::ecmp_hash, 7, seeds});
    Router weighted(tree.graph, {Routing::ecmp_hash, 7, seeds, PathWeights::rate});
    for (std::uint64_t connection = 0; connection < 500; ++connection)
      for (const auto& [from, to] : {std::pair{0u, 1u}, {0u, 2u}, {3u, 1u}})
        REQUIRE(equal.route(from, to, connection) == weighted.route(from, to, connection));
  }
}

TEST_CASE("hashed and weighted routes on drawn graphs are those of tables written out") {
  std::mt19937 draw(20261126);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(draw() % bound); };
  std::uint64_t joined = 0;
  for (std::uint64_t round = 0; round < 300; ++round) {
    Graph graph;
    const std::uint32_t gpus = 2 + below(4), switches = 2 + below(7), all = gpus + switches;
    for (std::uint32_t i = 0; i < all; ++i)
      graph.add_vertex(i < gpus ? VertexKind::gpu : VertexKind::network_switch, fmt::format("vertex{}", i));
    for (std::uint32_t i = 0; i < gpus; ++i)
      for (std::uint32_t ports = 1 + below(2); ports > 0; --ports)
        graph.add_cable({i, gpus + below(switches), LinkKind::network, 1 + below(6), 1});
    for (std::uint32_t cables = 3 * switches; cables > 0; --cables) {
      const std::uint32_t a = gpus + below(switches), b = gpus + below(switches);
      if (a != b) graph.add_cable({a, b, LinkKind::network, 1 + below(12), 1});
    }
    for (const HashSeeds seeds : {HashSeeds::per_hop, HashSeeds::per_switch, HashSeeds::same})
      for (const PathWeights weights : {PathWeights::equal, PathWeights::rate}) {
        CAPTURE(round, static_cast<int>(seeds), static_cast<int>(weights));
        REQUIRE(network::tests::differing_routes(graph, {Routing::ecmp_hash, round, seeds, weights}).empty());
      }
    try {
      Router router(std::make_shared<const Graph>(graph), Routing::ecmp_hash, 1);
      joined += !router.route(0, 1, 0).empty();
    } catch (const InputError&) {
    }
  }
  CHECK(joined > 150);
}
