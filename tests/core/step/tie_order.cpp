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
