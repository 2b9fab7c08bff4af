// Outcomes of components that are kept for other processes and later runs.
#include <catch2/catch.hpp>

#include <map>

#include "core/network/flows/component_cache.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

class Shelf final : public sharing::Keeper {
 public:
  std::optional<std::string> find(const sharing::Key& key) override {
    const auto kept = outcomes.find(key);
    if (kept == outcomes.end()) return {};
    ++found;
    return kept->second;
  }
  void keep(const sharing::Key& key, const std::string& outcome) override { outcomes.emplace(key, outcome); }
  std::map<sharing::Key, std::string> outcomes;
  int found = 0;
};

/// Drawn problems with transfers that are long enough to be worth keeping.
Problem draw_long(std::uint64_t seed, const std::vector<std::string>& kinds) {
  Problem problem = draw(seed, kinds);
  for (auto& arrival : problem.arrivals) arrival.bytes *= 64;
  return problem;
}

std::vector<Completion> play_with(const Problem& problem, sharing::Keeper* keeper, std::int64_t& simulated) {
  ComponentCache cache(problem.transport);
  if (keeper != nullptr) cache.keep_with(keeper);
  Counters counters;
  const auto done = play(problem, *make_decomposed_flows(problem.transport, cache), counters);
  simulated += cache.link_hops().simulated;
  return done;
}

}  // namespace

TEST_CASE("outcomes that others have kept change no picosecond, and are not simulated again") {
  Shelf shelf;
  std::int64_t alone = 0, first = 0, second = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const Problem problem = draw_long(seed, transport_kinds());
    const std::vector<Completion> expected = play_with(problem, nullptr, alone);
    REQUIRE(play_with(problem, &shelf, first) == expected);
    REQUIRE(play_with(problem, &shelf, second) == expected);
  }
  CHECK(shelf.found > 100);
  CHECK(first <= alone);
  CHECK(second < first - first / 10);
}

TEST_CASE("of two transports, or with and without whole periods, none finds what the other has kept") {
  Shelf shelf;
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Problem problem = draw_long(seed, {"dcqcn"});
    std::int64_t simulated = 0;
    play_with(problem, &shelf, simulated);
    const int before = shelf.found;
    problem.transport.kind = "swift";
    problem.transport.kind_options.clear();
    play_with(problem, &shelf, simulated);
    ComponentCache cache(problem.transport, std::size_t{1} << 30, false);
    cache.keep_with(&shelf);
    Counters counters;
    play(problem, *make_decomposed_flows(problem.transport, cache), counters);
    CHECK(shelf.found == before);
    kept = static_cast<int>(shelf.outcomes.size());
  }
  CHECK(kept > 20);
}

TEST_CASE("outcomes that were damaged while they were kept are simulated again") {
  Shelf shelf;
  int damaged = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const Problem problem = draw_long(seed, transport_kinds());
    std::int64_t alone = 0, first = 0, again = 0;
    Shelf own;
    const std::vector<Completion> expected = play_with(problem, nullptr, alone);
    play_with(problem, &own, first);
    std::size_t at = seed;
    for (auto& [key, outcome] : own.outcomes) {
      if (++at % 3 == 0)
        outcome.resize(outcome.size() / 2);
      else if (at % 3 == 1)
        outcome[at % outcome.size()] ^= 1;
      else
        outcome = own.outcomes.begin()->second;  // of another component, or its own
      ++damaged;
    }
    REQUIRE(play_with(problem, &own, again) == expected);
  }
  CHECK(damaged > 50);
}
