// Contiguous splits beside every split that there is.
#include "core/workload/strategy/contiguous_split.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <random>

using namespace manyworlds::core::workload;

namespace {

/// Returns the first of all splits in lexicographic order whose largest cost is least.
std::optional<std::vector<std::int64_t>> best_of_all(std::int64_t items, const std::vector<std::int64_t>& least_items,
                                                     const PartCost& cost) {
  std::optional<std::vector<std::int64_t>> best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> split;
  const std::function<void(std::int64_t, std::int64_t)> extend = [&](std::int64_t begin, std::int64_t largest) {
    if (split.size() == least_items.size()) {
      if (begin == items && largest < least) least = largest, best = split;
      return;
    }
    const std::size_t part = split.size();
    for (std::int64_t end = begin + least_items[part]; end <= items; ++end) {
      split.push_back(end - begin);
      extend(end, std::max(largest, cost(part, begin, end)));
      split.pop_back();
    }
  };
  extend(0, 0);
  return best;
}

}  // namespace

TEST_CASE("a contiguous split is the first of all whose largest cost is least") {
  int found = 0, none = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    std::mt19937_64 random(seed);
    const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
    const std::int64_t count = up_to(8);
    std::vector<std::int64_t> least;
    for (std::int64_t parts = 1 + up_to(4); parts > 0; --parts) least.push_back(up_to(1));
    // Costs of a part by itself, of its items in this part, and of the largest of them; small, so that many are equal.
    std::vector<std::int64_t> own, factor, items;
    for (std::size_t part = 0; part < least.size(); ++part) own.push_back(up_to(3)), factor.push_back(up_to(2));
    for (std::int64_t i = 0; i < count; ++i) items.push_back(up_to(3));
    const PartCost cost = [&](std::size_t part, std::int64_t begin, std::int64_t end) {
      std::int64_t sum = own[part], largest = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        sum += factor[part] * items[static_cast<std::size_t>(i)];
        largest = std::max(largest, items[static_cast<std::size_t>(i)]);
      }
      return sum + largest;
    };
    CAPTURE(seed, count, least);
    const auto split = contiguous_split(count, least, cost);
    REQUIRE(split == best_of_all(count, least, cost));
    ++(split ? found : none);
  }
  CHECK(found > 500);
  CHECK(none > 100);
}

TEST_CASE("equal items are dealt out such that the first parts have fewest") {
  const PartCost number = [](std::size_t, std::int64_t begin, std::int64_t end) { return end - begin; };
  CHECK(contiguous_split(10, {1, 1, 1, 1}, number) == std::vector<std::int64_t>{1, 3, 3, 3});
  CHECK(contiguous_split(12, {1, 1, 1, 1}, number) == std::vector<std::int64_t>{3, 3, 3, 3});
  CHECK(contiguous_split(3, {1, 1, 1, 1}, number) == std::nullopt);
  CHECK(contiguous_split(3, {0, 1, 1, 0}, number) == std::vector<std::int64_t>{0, 1, 1, 1});
}
