// Ids of different kinds do not mix, and cost nothing.
#include "core/base/id.hpp"

#include <catch2/catch.hpp>

#include <concepts>
#include <type_traits>

using namespace manyworlds::core;

namespace {

using Apple = Id<struct AppleTag>;
using Pear = Id<struct PearTag>;

template <class Index>
concept indexes_by_apple = requires(IdVector<Apple, int> values, Index index) {
  values[index];
};

}  // namespace

TEST_CASE("an id of one kind is none of another and no number") {
  STATIC_REQUIRE_FALSE(std::convertible_to<Apple, Pear>);
  STATIC_REQUIRE_FALSE(std::constructible_from<Apple, Pear>);
  STATIC_REQUIRE_FALSE(std::equality_comparable_with<Apple, Pear>);
  STATIC_REQUIRE_FALSE(std::convertible_to<Apple, std::uint32_t>);
  STATIC_REQUIRE_FALSE(std::convertible_to<std::uint32_t, Apple>);
  STATIC_REQUIRE(std::constructible_from<Apple, std::uint32_t>);
  STATIC_REQUIRE(std::totally_ordered<Apple>);
}

TEST_CASE("a vector by id takes the ids of its kind alone") {
  STATIC_REQUIRE(indexes_by_apple<Apple>);
  STATIC_REQUIRE_FALSE(indexes_by_apple<Pear>);
  STATIC_REQUIRE_FALSE(indexes_by_apple<std::uint32_t>);
}

TEST_CASE("an id takes the place of its number byte for byte") {
  STATIC_REQUIRE(sizeof(Apple) == sizeof(std::uint32_t));
  STATIC_REQUIRE(alignof(Apple) == alignof(std::uint32_t));
  STATIC_REQUIRE(std::is_trivially_copyable_v<Apple>);
}

TEST_CASE("the ids of a vector are those of its elements, in order") {
  IdVector<Apple, int> squares;
  for (int i = 0; i < 5; ++i) {
    CHECK(squares.next_id() == Apple(i));
    squares.push_back(i * i);
  }
  std::vector<int> seen;
  for (const Apple apple : squares.ids()) {
    CHECK(squares[apple] == static_cast<int>(apple.value() * apple.value()));
    seen.push_back(squares[apple]);
  }
  CHECK(seen == std::vector<int>(squares.begin(), squares.end()));
  CHECK(fmt::format("{:>3}", Apple(7)) == "  7");
}
