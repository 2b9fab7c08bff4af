// Max-min fair speeds: closed forms, and the definition itself on drawn loads, however they came to be there.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "core/step/fluid/max_min_speeds.hpp"

using namespace manyworlds::core::step;

namespace {

constexpr FluidShare part(double share) {
  return static_cast<FluidShare>(share * static_cast<double>(kFullSpeed));
}
double speed_of(const MaxMinSpeeds& speeds, std::uint32_t number) {
  return static_cast<double>(speeds.speed(number)) / static_cast<double>(kFullSpeed);
}

/// Max-min fairness in its plainest form: all speeds grow together, until a link is full or a collective is at full
/// speed; those that it concerns stay as they are.
std::map<std::uint32_t, double> water_filling(const std::map<std::uint32_t, MaxMinSpeeds::Loads>& present) {
  std::map<std::uint32_t, double> speeds;
  for (double level = 0; speeds.size() < present.size();) {
    std::map<std::uint32_t, double> used, growing;
    for (const auto& [number, loads] : present)
      for (const auto& [link, share, count] : loads) {
        const double wanted = count * static_cast<double>(share) / static_cast<double>(kFullSpeed);
        const auto fixed = speeds.find(number);
        if (fixed == speeds.end())
          growing[link] += wanted;
        else
          used[link] += wanted * fixed->second;
      }
    level = 1;
    for (const auto& [link, wanted] : growing) level = std::min(level, (1 - used[link]) / wanted);
    std::map<std::uint32_t, double> next = speeds;
    for (const auto& [number, loads] : present) {
      if (speeds.count(number) > 0) continue;
      bool stays = level == 1;
      for (const auto& [link, share, count] : loads)
        stays |= growing[link] > 0 && (1 - used[link]) / growing[link] <= level * (1 + 1e-12);
      if (stays) next[number] = level;
    }
    speeds = next;
  }
  return speeds;
}

}  // namespace

TEST_CASE("fluids that share a full link have equal speeds, and one limited elsewhere leaves its part to the others") {
  const MaxMinSpeeds::Loads whole{{0, part(1)}}, both{{0, part(1)}, {1, part(1)}}, far{{1, part(2)}};
  MaxMinSpeeds speeds(2);
  speeds.add(0, whole);
  CHECK(speeds.update().empty());
  CHECK(speed_of(speeds, 0) == 1);
  speeds.add(1, both);
  CHECK(speeds.update() == std::vector<std::uint32_t>{0, 1});
  CHECK(speed_of(speeds, 0) == Approx(0.5));
  CHECK(speed_of(speeds, 1) == Approx(0.5));
  speeds.add(2, far);  // of link 1 it takes twice what number 1 does: both have a third, and number 0 has the rest
  CHECK(speeds.update() == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(speed_of(speeds, 0) == Approx(2.0 / 3));
  CHECK(speed_of(speeds, 1) == Approx(1.0 / 3));
  CHECK(speed_of(speeds, 2) == Approx(1.0 / 3));
  speeds.remove(1);
  CHECK(speeds.update() == std::vector<std::uint32_t>{0, 2});
  CHECK(speed_of(speeds, 0) == 1);
  CHECK(speed_of(speeds, 2) == Approx(0.5));  // it is more than its link can do by itself
}

TEST_CASE("fluid speeds are those of water filling, whatever was added and removed before") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto drawn = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
    const std::uint32_t links = 1 + drawn(12);
    MaxMinSpeeds speeds(links);
    std::map<std::uint32_t, MaxMinSpeeds::Loads> present;
    for (std::uint32_t change = 0; change < 60; ++change) {
      const std::uint32_t number = drawn(20);
      if (present.count(number) > 0) {
        speeds.remove(number);
        present.erase(number);
      } else {
        MaxMinSpeeds::Loads& loads = present[number];
        for (std::uint32_t link = 0; link < links; ++link)
          if (drawn(3) == 0) loads.push_back({link, part(0.05 + drawn(1'000) / 900.0)});
        speeds.add(number, loads);
      }
      if (drawn(3) == 0) continue;  // several changes at once
      speeds.update();
      for (const auto& [one, expected] : water_filling(present)) {
        INFO("seed " << seed << ", change " << change << ", collective " << one);
        REQUIRE(speed_of(speeds, one) == Approx(expected).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("collectives that go alike are one, to the last bit") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto drawn = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
    // Copies have links of their own, which are alike, and a common one.
    const std::uint32_t copies = 2 + drawn(5), own = 1 + drawn(3), kinds = 1 + drawn(5);
    MaxMinSpeeds all(1 + copies * own), merged(1 + own);
    std::vector<MaxMinSpeeds::Loads> of_all(std::size_t{kinds} * copies), of_merged(kinds);
    for (std::uint32_t kind = 0; kind < kinds; ++kind) {
      const FluidShare common = part(drawn(1'000) / 1'500.0);
      of_merged[kind].push_back({0, common, copies});
      for (std::uint32_t copy = 0; copy < copies; ++copy) of_all[kind * copies + copy].push_back({0, common});
      for (std::uint32_t link = 0; link < own; ++link) {
        if (drawn(2) == 0) continue;
        const FluidShare share = part(drawn(1'000) / 700.0);
        of_merged[kind].push_back({1 + link, share});
        for (std::uint32_t copy = 0; copy < copies; ++copy)
          of_all[kind * copies + copy].push_back({1 + copy * own + link, share});
      }
      merged.add(kind, of_merged[kind]);
      for (std::uint32_t copy = 0; copy < copies; ++copy) all.add(kind * copies + copy, of_all[kind * copies + copy]);
    }
    merged.update();
    all.update();
    for (std::uint32_t kind = 0; kind < kinds; ++kind)
      for (std::uint32_t copy = 0; copy < copies; ++copy)
        REQUIRE(all.speed(kind * copies + copy) == merged.speed(kind));
  }
}
