// Contiguous splits beside every split that there is.
#include "core/workload/strategy/contiguous_split.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <tuple>

using namespace manyworlds::core::workload;

namespace {

/// The largest cost of a split, its largest second cost, and the sum of the squares of these.
using Weight = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

/// Returns the first of all splits in lexicographic order whose weight is least.
std::optional<std::vector<std::int64_t>> best_of_all(std::int64_t items, const std::vector<std::int64_t>& least_items,
                                                     const PartCost& cost, const PartCost& second) {
  std::optional<std::vector<std::int64_t>> best;
  Weight least;
  std::vector<std::int64_t> split;
  const std::function<void(std::int64_t, Weight)> extend = [&](std::int64_t begin, Weight weight) {
    if (split.size() == least_items.size()) {
      if (begin == items && (!best || weight < least)) least = weight, best = split;
      return;
    }
    const std::size_t part = split.size();
    const auto [largest, largest_second, squares] = weight;
    for (std::int64_t end = begin + least_items[part]; end <= items; ++end) {
      split.push_back(end - begin);
      const std::int64_t also = second(part, begin, end);
      extend(end, {std::max(largest, cost(part, begin, end)), std::max(largest_second, also), squares + also * also});
      split.pop_back();
    }
  };
  extend(0, {});
  return best;
}

/// Costs of a part by itself, of its items in this part, and of the largest of them; small, so that many are equal.
PartCost drawn_cost(std::size_t parts, std::int64_t items, std::mt19937_64& random) {
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  std::vector<std::int64_t> own, factor, each;
  for (std::size_t part = 0; part < parts; ++part) own.push_back(up_to(3)), factor.push_back(up_to(2));
  for (std::int64_t i = 0; i < items; ++i) each.push_back(up_to(3));
  return [=](std::size_t part, std::int64_t begin, std::int64_t end) {
    std::int64_t sum = own[part], largest = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      sum += factor[part] * each[static_cast<std::size_t>(i)];
      largest = std::max(largest, each[static_cast<std::size_t>(i)]);
    }
    return sum + largest;
  };
}

std::int64_t none(std::size_t, std::int64_t, std::int64_t) {
  return 0;
}

}  // namespace

TEST_CASE("a contiguous split is the first of all whose largest cost is least") {
  int found = 0, missing = 0, by_second = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    std::mt19937_64 random(seed);
    const auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
    const std::int64_t count = up_to(8);
    std::vector<std::int64_t> least;
    for (std::int64_t parts = 1 + up_to(4); parts > 0; --parts) least.push_back(up_to(1));
    const PartCost cost = drawn_cost(least.size(), count, random), second = drawn_cost(least.size(), count, random);
    CAPTURE(seed, count, least);
    const auto split = contiguous_split(count, least, cost);
    REQUIRE(split == best_of_all(count, least, cost, none));
    const auto also = contiguous_split(count, least, cost, second);
    REQUIRE(also == best_of_all(count, least, cost, second));
    REQUIRE(contiguous_split(count, least, cost, cost) == best_of_all(count, least, cost, cost));
    ++(split ? found : missing);
    by_second += also != split ? 1 : 0;
  }
  CHECK(found > 500);
  CHECK(missing > 100);
  CHECK(by_second > 100);
}

TEST_CASE("equal items are dealt out such that the first parts have fewest") {
  const PartCost number = [](std::size_t, std::int64_t begin, std::int64_t end) { return end - begin; };
  CHECK(contiguous_split(10, {1, 1, 1, 1}, number) == std::vector<std::int64_t>{1, 3, 3, 3});
  CHECK(contiguous_split(12, {1, 1, 1, 1}, number) == std::vector<std::int64_t>{3, 3, 3, 3});
  CHECK(contiguous_split(3, {1, 1, 1, 1}, number) == std::nullopt);
  CHECK(contiguous_split(10, {1, 1, 1, 1}, number, number) == std::vector<std::int64_t>{2, 2, 3, 3});
  CHECK(contiguous_split(3, {1, 1, 1, 1}, number, number) == std::nullopt);
  CHECK(contiguous_split(3, {0, 1, 1, 0}, number) == std::vector<std::int64_t>{0, 1, 1, 1});
}
