// Fast-forward: skipping whole periods changes nothing, and skipping by rate little.
#include <catch2/catch.hpp>

#include <map>

#include "core/network/flows/component_cache.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

/// `senders` hosts send to one more over one switch, all the same bytes, all at once.
Problem incast(const Transport& transport, std::uint32_t senders, std::int64_t bytes) {
  Problem problem;
  problem.transport = transport;
  for (std::uint32_t i = 0; i < senders; ++i) {
    problem.links.push_back(spec(kRate, kMicrosecond, true, false));
    problem.routes.push_back({i, senders});
    problem.arrivals.push_back({0, {0, i}, i, bytes});
  }
  problem.links.push_back(spec(kRate, kMicrosecond, false, true));
  problem.ranks = {0};
  return problem;
}

struct Run {
  std::map<std::uint32_t, Time> ends;  // by transfer
  Counters counters;
  LinkHops hops;
};

Run run(const Problem& problem, ComponentCache& cache) {
  Run result;
  const LinkHops before = cache.link_hops();
  auto flows = make_decomposed_flows(problem.transport, cache);
  for (const Completion& done : play(problem, *flows, result.counters)) result.ends[done.id.transfer] = done.at;
  result.hops = cache.link_hops() - before;
  return result;
}

}  // namespace

TEST_CASE("a long transfer that nobody disturbs takes the simulation of a short one, with every transport") {
  for (const std::string& kind : transport_kinds()) {
    Transport transport;
    transport.kind = kind;
    transport.window_bytes = 1 << 26;
    ComponentCache cache(transport);
    const std::int64_t packets = 1 << 20;
    const Run result = run(incast(transport, 1, packets * 4096), cache);
    INFO(kind);
    CHECK(result.counters.link_hops == 2 * packets);
    CHECK(result.hops.simulated + result.hops.periods == 2 * packets);
    CHECK(result.hops.rate == 0);
    if (kind == "static_window" || kind == "dcqcn" || kind == "swift") {  // the others hold back even who is alone
      CHECK(result.ends.at(0) == (packets + 1) * kPacket + 2 * kMicrosecond);
      CHECK(result.hops.simulated * 50 < result.counters.link_hops);
    }
  }
}

TEST_CASE("skipped whole periods give the plain loop's picoseconds on drawn problems of all transports") {
  LinkHops with, without;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = draw(seed, transport_kinds(), 800);
    Counters plain_counters, counters;
    auto plain = make_plain_flows(problem.transport);
    const auto expected = play(problem, *plain, plain_counters);
    for (const bool periods : {true, false}) {
      ComponentCache cache(problem.transport, std::size_t{1} << 30, periods);
      auto decomposed = make_decomposed_flows(problem.transport, cache);
      INFO("seed " << seed << " " << problem.transport.kind << " periods " << periods);
      REQUIRE(play(problem, *decomposed, counters) == expected);
      REQUIRE(counters.link_hops == plain_counters.link_hops);
      REQUIRE(counters.ecn_marks == plain_counters.ecn_marks);
      REQUIRE(counters.pauses == plain_counters.pauses);
      (periods ? with : without) += cache.link_hops();
    }
  }
  CHECK(without.periods == 0);
  WARN(with.periods << " of " << without.simulated);
  CHECK(with.periods * 100 > without.simulated);  // the draws do recur, whatever transports they are of
  CHECK(with.rate == 0);
}

TEST_CASE("by rate, transfers under congestion end within the tolerance of all their packets, which are all counted") {
  std::int64_t all = 0, simulated = 0;
  for (const std::string& kind : transport_kinds())
    for (const std::int64_t megabytes : {32, 256}) {
      Transport transport;
      transport.kind = kind;
      ComponentCache exact(transport);
      const Run full = run(incast(transport, 8, megabytes * 1'000'000), exact);
      transport.rate_tolerance_ppm = 10'000;
      ComponentCache by_rate(transport);
      const Run result = run(incast(transport, 8, megabytes * 1'000'000), by_rate);
      INFO(kind << " " << megabytes << " MB");
      CHECK(result.counters.link_hops == full.counters.link_hops);
      for (const auto& [transfer, end] : full.ends)
        CHECK(static_cast<double>(result.ends.at(transfer)) == Approx(static_cast<double>(end)).epsilon(0.01));
      all += full.hops.simulated, simulated += result.hops.simulated;
    }
  CHECK(simulated * 10 < all * 9);
}

TEST_CASE("what is skipped by rate does not depend on what is in the cache") {
  Transport transport;
  transport.rate_tolerance_ppm = 20'000;
  const auto kinds = transport_kinds();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Problem first = draw(seed, kinds, 200), second = draw(seed + 1'000, kinds, 200);
    first.transport = second.transport = transport;
    ComponentCache used(transport), fresh(transport);
    used.balance = -1'000'000'000;  // as if remembering had never paid
    run(first, used);
    const Run after = run(second, used), alone = run(second, fresh);
    INFO("seed " << seed);
    REQUIRE(after.ends == alone.ends);
    REQUIRE(after.counters.link_hops == alone.counters.link_hops);
  }
}
