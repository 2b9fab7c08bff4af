// Who helps whom.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

#include "farm/coordinator/lending.hpp"

using manyworlds::farm::Lending;
using State = Lending::State;

TEST_CASE("whatever workers do, idle ones help busy ones evenly, each one, and changes are told") {
  constexpr int kWorkers = 40;
  std::mt19937 random(7);
  Lending lending;
  std::map<int, State> states;
  std::map<int, std::vector<std::uint32_t>> told;
  for (int round = 0; round < 5'000; ++round) {
    const int worker = static_cast<int>(random() % kWorkers);
    const auto state = static_cast<State>(random() % 3);
    states[worker] = state;
    lending.set(worker, state);
    for (const int changed : lending.take_changed()) told[changed] = lending.helpers_of(changed);
    std::size_t idle = 0, least = SIZE_MAX, most = 0, helping = 0;
    std::map<std::uint32_t, int> times;
    for (const auto& [number, is] : states) {
      const auto helpers = lending.helpers_of(number);
      REQUIRE(told[number] == helpers);
      idle += is == State::idle;
      if (is != State::busy) REQUIRE(helpers.empty());
      if (is != State::busy) continue;
      least = std::min(least, helpers.size()), most = std::max(most, helpers.size());
      helping += helpers.size();
      for (const std::uint32_t helper : helpers) {
        REQUIRE(states[static_cast<int>(helper)] == State::idle);
        REQUIRE(++times[helper] == 1);
      }
    }
    if (least == SIZE_MAX) continue;
    REQUIRE(most <= least + 1);
    REQUIRE((helping == idle || least == 16));
  }
}
