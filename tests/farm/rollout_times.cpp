// The time of a rollout in closed form, beside a loop over its steps, and when phases on pools begin.
#include "farm/phases/rollout_time.hpp"

#include <catch2/catch.hpp>

#include "core/base/hash.hpp"
#include "farm/phases/composition.hpp"

namespace manyworlds::farm::phases {
namespace {

using experiments::phases::Decoding;
using experiments::phases::decoding_grid;
using experiments::phases::decoding_of;
using experiments::phases::DecodingGrid;
using experiments::phases::Stretch;

std::vector<Decoding> drawn_replicas(std::uint64_t seed, std::size_t count) {
  std::vector<Decoding> replicas;
  for (std::uint64_t replica = 0; replica < count; ++replica) {
    std::vector<std::int64_t> tokens;
    for (std::uint64_t i = 0; i < 30; ++i)
      tokens.push_back(static_cast<std::int64_t>(1 + core::decision_hash(seed, replica, i) % 200));
    replicas.push_back(decoding_of(tokens, 17, 1 + static_cast<std::int64_t>(seed % 13)));
  }
  return replicas;
}

/// Returns drawn times of the grid's points.
std::vector<std::vector<double>> drawn_seconds(const DecodingGrid& grid, std::uint64_t seed) {
  std::vector<std::vector<double>> seconds;
  for (std::size_t column = 0; column < grid.samples.size(); ++column) {
    seconds.emplace_back();
    for (std::size_t i = 0; i < grid.lengths[column].size(); ++i)
      seconds.back().push_back(0.01 + core::unit_interval(core::decision_hash(seed, column, i)));
  }
  return seconds;
}

}  // namespace

TEST_CASE("the steps between two endings take what a loop over them takes") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<Decoding> replicas = drawn_replicas(seed, 3);
    const DecodingGrid grid = decoding_grid(replicas);
    const DecodingTimes times(grid, drawn_seconds(grid, seed));
    for (const Decoding& replica : replicas)
      for (const Stretch& one : replica.stretches) {
        double plain = 0;
        for (std::int64_t i = 0; i < one.steps; ++i)
          plain += times.step_s(one.samples,
                                static_cast<double>(one.cached + i * one.samples) / static_cast<double>(one.samples));
        CHECK(times.stretch_s(one) == Approx(plain).epsilon(1e-11));
      }
  }
}

TEST_CASE("times that are linear in samples and in cached tokens are exact wherever they are simulated") {
  // 3 ms, 0.1 ms a sample, 1 us a cached token: all steps of a replica follow from sums alone.
  const auto linear = [](double samples, double cached) { return 3e-3 + 1e-4 * samples + 1e-6 * cached; };
  const std::vector<Decoding> replicas = drawn_replicas(7, 2);
  const DecodingGrid grid = decoding_grid(replicas);
  std::vector<std::vector<double>> seconds;
  for (std::size_t column = 0; column < grid.samples.size(); ++column) {
    seconds.emplace_back();
    for (const std::int64_t length : grid.lengths[column]) {
      const auto samples = static_cast<double>(grid.samples[column]);
      seconds.back().push_back(linear(samples, samples * static_cast<double>(length)));
    }
  }
  // Between numbers of samples the mean length is interpolated, not its product with them: bilinear times are exact.
  const DecodingTimes times(grid, seconds);
  const RolloutTime rollout = rollout_time(replicas, grid, times, {0.5, 0.5, 1});
  double slowest = 0;
  for (const Decoding& replica : replicas) {
    double own = 0;
    for (const Stretch& one : replica.stretches)
      for (std::int64_t i = 0; i < one.steps; ++i)
        own += linear(static_cast<double>(one.samples), static_cast<double>(one.cached + i * one.samples));
    for (const std::int64_t prompts : replica.prefills) own += 0.5 * static_cast<double>(prompts);
    slowest = std::max(slowest, own);
  }
  CHECK(rollout.slowest_s == Approx(slowest).epsilon(1e-10));
}

TEST_CASE("the slowest replica ends a rollout, and the others wait") {
  const std::vector<Decoding> replicas{decoding_of(std::vector<std::int64_t>{11}, 5, 1),
                                       decoding_of(std::vector<std::int64_t>{21}, 5, 1)};
  const DecodingGrid grid = decoding_grid(replicas);
  const DecodingTimes times(grid,
                            std::vector<std::vector<double>>(1, std::vector<double>(grid.lengths[0].size(), 0.1)));
  const RolloutTime rollout = rollout_time(replicas, grid, times, {1, 1, 1});
  CHECK(rollout.slowest == 1);
  CHECK(rollout.steps == 20);
  CHECK(rollout.slowest_s == Approx(3));
  CHECK(rollout.mean_s == Approx(2.5));
  CHECK(rollout.prefill_s == Approx(1));
  CHECK(rollout.waiting() == Approx(1.0 / 6));
  CHECK(rollout.share_of_cells == std::vector<double>{1});
}

TEST_CASE("prompts are prefilled in groups, and the rest between one and a group") {
  const PrefillTimes prefill{1, 4, 4};
  CHECK(prefill.of(1) == Approx(1));
  CHECK(prefill.of(3) == Approx(3));
  CHECK(prefill.of(4) == Approx(4));
  CHECK(prefill.of(9) == Approx(9));
  const PrefillTimes alone{2, 2, 1};
  CHECK(alone.of(3) == Approx(6));
}

TEST_CASE("phases on one pool follow each other, and those on others wait for what they name alone") {
  const std::vector<TimedPhase> phases{{3, {0}, {}}, {2, {1}, {}}, {4, {1}, {0}}, {1, {0, 1}, {2}}};
  const Composition together = synchronous(phases, 2);
  CHECK(together.begins == std::vector<double>{0, 0, 3, 7});
  CHECK(together.iteration_s == 8);
  CHECK(together.busy_s == std::vector<double>{4, 7});
  const Composition apart = asynchronous(phases, 2);
  CHECK(apart.iteration_s == 7);
  CHECK(apart.begins.empty());
}

}  // namespace manyworlds::farm::phases
