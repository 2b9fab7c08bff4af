// Ranks of collectives in ties, against the order in which a sort puts them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "core/step/network/tie_order.hpp"

using manyworlds::core::step::TieOrder;

TEST_CASE("ranks order collectives by group and then as they joined, whichever group joins when") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::minstd_rand0 draw(seed + 1);
    const auto random = [&] { return static_cast<std::uint32_t>(draw()); };
    const std::uint32_t groups = 1 + random() % 12;
    TieOrder ranks;
    std::vector<std::uint32_t> joined;  // groups of the configuration, as the component numbers them
    std::vector<std::pair<std::uint32_t, std::uint32_t>>
        all;  // (group of the configuration, turn): what ranks must follow
    std::vector<std::uint32_t> before;
    for (std::uint32_t turn = 0; turn < 150; ++turn) {
      const std::uint32_t group = random() % groups;
      const auto known = std::find(joined.begin(), joined.end(), group);
      const auto number = static_cast<std::uint32_t>(known - joined.begin());
      const auto place =
          std::count_if(joined.begin(), joined.end(), [&](std::uint32_t other) { return other < group; });
      if (known == joined.end()) joined.push_back(group);
      all.emplace_back(group, turn);
      const bool moved = ranks.add(number, static_cast<std::uint32_t>(place));
      REQUIRE(ranks.all().size() == all.size());
      for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) REQUIRE((all[a] < all[b]) == (ranks.all()[a] < ranks.all()[b]));
      REQUIRE((moved || std::equal(before.begin(), before.end(), ranks.all().begin())));
      before = ranks.all();
    }
  }
}

TEST_CASE("ranks of two components that are joined keep both their orders, and those of groups between them") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::minstd_rand0 draw(seed + 1);
    const auto random = [&] { return static_cast<std::uint32_t>(draw()); };
    // Groups of the configuration that each component knows, as it numbers them, and its (group, turn) by collective.
    std::vector<std::uint32_t> joined[2];
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all[2];
    TieOrder ranks[2];
    const auto place = [](const std::vector<std::uint32_t>& groups, std::uint32_t group) {
      return static_cast<std::uint32_t>(
          std::count_if(groups.begin(), groups.end(), [&](std::uint32_t other) { return other < group; }));
    };
    const auto add = [&](std::uint32_t to, std::uint32_t group, std::uint32_t turn) {
      auto& groups = joined[to];
      const auto number = static_cast<std::uint32_t>(std::find(groups.begin(), groups.end(), group) - groups.begin());
      ranks[to].add(number, place(groups, group));
      if (number == groups.size()) groups.push_back(group);
      all[to].emplace_back(group, turn);
    };
    for (std::uint32_t turn = 0; turn < 120; ++turn) add(random() % 2, random() % 12, turn);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;
    for (const std::uint32_t group : joined[1]) {
      const auto known = std::find(joined[0].begin(), joined[0].end(), group);
      numbers.emplace_back(known - joined[0].begin(), place(joined[0], group));
      if (known == joined[0].end()) joined[0].push_back(group);
    }
    ranks[0].absorb(ranks[1], numbers);
    // Of a group that both know, what was absorbed follows; what joins later follows both.
    for (const auto& [group, turn] : all[1]) all[0].emplace_back(group, 1'000 + turn);
    for (std::uint32_t turn = 2'000; turn < 2'030; ++turn) add(0, random() % 12, turn);
    REQUIRE(ranks[0].all().size() == all[0].size());
    for (std::size_t a = 0; a < all[0].size(); ++a)
      for (std::size_t b = 0; b < a; ++b) REQUIRE((all[0][a] < all[0][b]) == (ranks[0].all()[a] < ranks[0].all()[b]));
  }
}
