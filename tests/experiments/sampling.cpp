// A sample of a sweep: points drawn by a seed, each once, as valid as asked for.
#include <catch2/catch.hpp>

#include <set>

#include "experiments/axes/sampling.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;

namespace {

const std::string kAxes =
    "axes:\n  strategy.tp: [1, 2, 3, 4]\n  strategy.pp: [1, 2, 3, 4]\n  strategy.micro_batch: [1, 2, 4]\n"
    "where: [\"strategy.tp * strategy.pp <= 8\"]\n";

using Row = std::vector<core::OptionValue>;

std::vector<Row> rows_of(const Sweep& sweep) {
  std::vector<Row> rows;
  for (const Experiment& one : sweep.experiments) rows.push_back(one.axes);
  return rows;
}

}  // namespace

TEST_CASE("a shuffled grid has every point once, and another order for another seed") {
  for (const std::uint64_t points : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 1000u}) {
    std::set<std::uint64_t> seen;
    std::size_t alike = 0;
    for (std::uint64_t place = 0; place < points; ++place) {
      const std::uint64_t point = GridPermutation(points, 1).at(place);
      CHECK(point < points);
      seen.insert(point);
      alike += point == GridPermutation(points, 2).at(place) ? 1 : 0;
    }
    CHECK(seen.size() == points);
    if (points >= 63) CHECK(alike < points / 8);
  }
}

TEST_CASE("points of a shuffled grid are spread over it evenly") {
  constexpr std::uint64_t kPoints = 1'000'000'007, kDrawn = 16'000, kParts = 16;
  std::vector<double> counts(kParts, 0);
  const GridPermutation drawn(kPoints, 7);
  for (std::uint64_t place = 0; place < kDrawn; ++place) counts[drawn.at(place) * kParts / kPoints] += 1;
  double chi_squared = 0;
  for (const double count : counts) chi_squared += (count - 1'000) * (count - 1'000) / 1'000;
  CHECK(chi_squared < 37.7);  // exceeded once in 1,000 times with 15 degrees of freedom
}

TEST_CASE("a sample has as many valid points as asked for, in the order of the sweep it is drawn from") {
  const auto all = rows_of(read(kSingle + kAxes));
  REQUIRE(all.size() > 12);
  const Sweep sweep = read(kSingle + kAxes + "sample: {experiments: 12, seed: 3}\n");
  const auto drawn = rows_of(sweep);
  REQUIRE(drawn.size() == 12);
  std::size_t at = 0;
  for (const Row& row : drawn) {
    while (at < all.size() && all[at] != row) ++at;
    REQUIRE(at < all.size());
    ++at;
  }
  for (std::uint32_t id = 0; id < 12; ++id) CHECK(sweep.experiments[id].id == id);
  for (const Excluded& one : sweep.excluded) CHECK(std::count(all.begin(), all.end(), one.axes) == 0);
  CHECK(drawn != rows_of(read(kSingle + kAxes + "sample: {experiments: 12, seed: 4}\n")));
  CHECK(serialize(sweep) == serialize(deserialize(serialize(sweep))));
}

TEST_CASE("a smaller sample of the same seed is part of a larger one, and all points are the sweep") {
  const auto all = rows_of(read(kSingle + kAxes));
  const auto few = rows_of(read(kSingle + kAxes + "sample: {experiments: 5}\n"));
  const auto more = rows_of(read(kSingle + kAxes, {"sample.experiments=10", "sample.seed=1"}));
  REQUIRE(few.size() == 5);
  REQUIRE(more.size() == 10);
  for (const Row& row : few) CHECK(std::count(more.begin(), more.end(), row) == 1);
  CHECK(rows_of(read(kSingle + kAxes, {fmt::format("sample.experiments={}", all.size())})) == all);
}

TEST_CASE("what a sample cannot be is told") {
  CHECK_THAT(error_of(kSingle + kAxes + "sample: {experiments: 49}\n"),
             Contains("'sample.experiments' is 49") && Contains("take fewer"));
  CHECK_THAT(error_of(kSingle + kAxes + "sample: {experiment: 4}\n"), Contains("did you mean 'experiments'"));
  CHECK_THAT(error_of(kSingle + kAxes + "sample: {seed: 4}\n"), Contains("needs experiments"));
  CHECK_THAT(error_of(kSingle + kAxes + "sample: 4\n"), Contains("must be a mapping"));
  CHECK_THAT(error_of(kSingle + kAxes + "sample: {experiments: 0}\n"), Contains("sample.experiments"));
  CHECK_THAT(error_of(kSingle + kAxes, {"sample.seed=4"}), Contains("needs 'sample.experiments'"));
  CHECK_THAT(error_of(kSingle + "sample: {experiments: 1}\n"), Contains("there are none"));
}

TEST_CASE("a sample is drawn from grids too large to be walked") {
  std::string axes = "axes:\n";
  for (const char* key : {"capacity_factor", "hot_expert_spread", "hot_expert_tflops", "hot_expert_gbps"})
    axes += fmt::format("  strategy.{}: {{range: [0, 999, \"+1\"]}}\n", key);
  CHECK_THAT(error_of(kSingle + axes), Contains("draw from it with 'sample: {experiments: N}'"));
  const std::string experts = with(kSingle, "layers: 4,", "layers: 4, experts: 4,");
  const Sweep sweep =
      read(with(experts, "tp: 2,", "tp: 2, sequence_parallel: true,") + axes + "sample: {experiments: 20}\n");
  CHECK(sweep.experiments.size() == 20);
}
