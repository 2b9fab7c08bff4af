// Links that are loaded alike where packets are sprayed, and pools of links that adaptive routing shares out.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "core/step/symmetry/link_pools.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using step::LinkPools;

namespace {

constexpr std::int64_t kRate = 400'000'000'000;

/// Leaves with one GPU each and spines, with cables of which some are down or slow.
struct Tree {
  std::uint32_t leaves, spines;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> rates{};  // by (leaf, spine); 0: down

  std::shared_ptr<const Graph> graph() const {
    auto graph = std::make_shared<Graph>();
    for (std::uint32_t i = 0; i < leaves; ++i) graph->add_vertex(VertexKind::gpu, "gpu");
    for (std::uint32_t i = 0; i < leaves + spines; ++i) graph->add_vertex(VertexKind::network_switch, "switch");
    for (std::uint32_t i = 0; i < leaves; ++i) graph->add_cable(i, leaves + i, LinkKind::network, kRate, 1);
    for (std::uint32_t i = 0; i < leaves; ++i)
      for (std::uint32_t spine = 0; spine < spines; ++spine) {
        const auto found = rates.find({i, spine});
        const std::int64_t rate = found == rates.end() ? kRate : found->second;
        if (rate > 0) graph->add_cable(leaves + i, 2 * leaves + spine, LinkKind::network, rate, 1);
      }
    return graph;
  }
};

struct Pooled {
  std::shared_ptr<PathSpreads> paths;
  std::vector<Spread> spreads;  // of every pair, by source and destination
  LinkPools pools;

  Pooled(const Tree& tree, bool is_adaptive)
      : paths(std::make_shared<PathSpreads>(tree.graph())), pools(paths, is_adaptive) {
    for (std::uint32_t source = 0; source < tree.leaves; ++source)
      for (std::uint32_t destination = 0; destination < tree.leaves; ++destination)
        spreads.push_back(source == destination ? Spread{} : paths->between(source, destination));
    pools.add(spreads);
    pools.close();
  }
  /// The time that 2^32 bits of a pair take of each pool, by the pool's number of links, in units of what they take of
  /// one link at kRate; without NICs.
  std::multimap<std::size_t, double> times(std::uint32_t leaves, std::uint32_t source,
                                           std::uint32_t destination) const {
    std::multimap<std::size_t, double> result;
    for (const LinkPools::Use& use : pools.uses_of(spreads[source * leaves + destination]))
      if (use.pool >= 2 * leaves)
        result.emplace(pools.ways(use.pool), static_cast<double>(use.share) / static_cast<double>(kAllPackets) *
                                                 static_cast<double>(kRate) /
                                                 static_cast<double>(pools.rate(use.pool)));
    return result;
  }
};

}  // namespace

TEST_CASE("two hosts over k paths load each with 1/k, sprayed or adaptive, and over those that are left with 1/(k-1)") {
  for (const std::uint32_t spines : {2u, 4u, 16u, 64u})
    for (const bool is_adaptive : {false, true})
      for (const bool is_broken : {false, true}) {
        CAPTURE(spines, is_adaptive, is_broken);
        Tree tree{2, spines};
        if (is_broken) tree.rates[{0, 0}] = 0;
        const Pooled pooled(tree, is_adaptive);
        const auto times = pooled.times(2, 0, 1);
        const std::size_t ways = spines - is_broken;
        REQUIRE(times.size() == 2);  // up and down
        for (const auto& [links, time] : times) {
          CHECK(links == ways);
          CHECK(time == Approx(1.0 / static_cast<double>(ways)));
        }
      }
}

TEST_CASE(
    "sprayed packets do not know of a link that is down elsewhere, adaptive ones leave the rest to those it hits") {
  Tree tree{3, 4, {{{0, 0}, 0}}};
  const Pooled sprayed(tree, false), adaptive(tree, true);
  // From leaf 1: to leaf 2 over four spines, to leaf 0 over three of them. Their loads of the three add up.
  CHECK(sprayed.times(3, 1, 2) == std::multimap<std::size_t, double>{{1, 0.25}, {1, 0.25}, {3, 0.25}, {3, 0.25}});
  const auto hit = sprayed.times(3, 1, 0);
  REQUIRE(hit.size() == 2);
  for (const auto& [links, time] : hit) CHECK((links == 3 && time == Approx(1.0 / 3)));
  // Three links for the pair that is hit, and four for both together.
  CHECK(adaptive.times(3, 1, 2) == std::multimap<std::size_t, double>{{4, 0.25}, {4, 0.25}});
  const auto shared = adaptive.times(3, 1, 0);
  REQUIRE(shared.size() == 3);
  CHECK(std::count_if(shared.begin(), shared.end(),
                      [](const auto& one) { return one.first == 3 && one.second == Approx(1.0 / 3); }) == 2);
  CHECK(shared.count(4) == 1);
  CHECK(shared.find(4)->second == Approx(0.25));
}

TEST_CASE("sprayed packets wait for a slow link, adaptive ones use what it has") {
  for (const std::uint32_t spines : {2u, 4u, 8u}) {
    CAPTURE(spines);
    const Tree tree{2, spines, {{{0, 1}, kRate / 4}}};
    double slowest[2] = {0, 0};
    for (const bool is_adaptive : {false, true})
      for (const auto& [links, time] : Pooled(tree, is_adaptive).times(2, 0, 1))
        slowest[is_adaptive] = std::max(slowest[is_adaptive], time);
    CHECK(slowest[0] == Approx(4.0 / spines));           // the slow link's share at a quarter of the rate
    CHECK(slowest[1] == Approx(1.0 / (spines - 0.75)));  // all of what is there
  }
}

TEST_CASE("every link of a sprayed pool is loaded as the others are, on drawn trees with faults") {
  std::size_t pools = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Tree tree{3, static_cast<std::uint32_t>(4 + random() % 4)};
    for (int fault = 0; fault < 3; ++fault)
      tree.rates[{static_cast<std::uint32_t>(random() % 3), static_cast<std::uint32_t>(random() % tree.spines)}] =
          random() % 2 == 0 ? 0 : kRate / 2;
    const Pooled pooled(tree, false);
    for (std::uint32_t pair = 0; pair < 9; ++pair) {
      if (pair % 4 == 0) continue;  // a GPU and itself
      std::map<std::uint32_t, std::int64_t> on_link;
      const Spread& spread = pooled.spreads[pair];
      for (const SpreadHop& hop : pooled.paths->middle(spread.middle))
        for (const LinkShare& one : hop) on_link[one.link] += one.share;
      // What the links that are used have in all is what the pools have in all.
      std::int64_t all = 0, of_pools = 0;
      for (const auto& [link, share] : on_link) all += share;
      for (const LinkPools::Use& use : pooled.pools.uses_of(spread)) {
        if (pooled.pools.link_of(use.pool) < 6) continue;  // NICs
        of_pools += use.share * static_cast<std::int64_t>(pooled.pools.ways(use.pool));
        CHECK(on_link.at(pooled.pools.link_of(use.pool)) == use.share);
        pools += pooled.pools.ways(use.pool) > 1;
      }
      CHECK(all == of_pools);
    }
  }
  CHECK(pools > 100);
}
