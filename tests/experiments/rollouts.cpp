// What replicas decode, beside a plain loop over steps.
#include "experiments/rollouts/decoding.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "core/base/hash.hpp"
#include "experiments/phase_files/response_lengths.hpp"
#include "experiments/rollouts/decoding_grid.hpp"

namespace manyworlds::experiments::phases {
namespace {

/// A replica step by step: (samples in flight, tokens in their caches) of each step, and how many prompts each prefill
/// has.
struct PlainReplica {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  std::vector<std::int64_t> prefills;
};

PlainReplica plain_replica(const std::vector<std::int64_t>& tokens, std::int64_t prompt, std::int64_t concurrent) {
  struct Sample {
    std::int64_t left, cached;
  };
  PlainReplica replica;
  std::vector<Sample> flying;
  std::size_t next = 0;
  while (true) {
    std::int64_t prefilled = 0;
    const std::size_t room = static_cast<std::size_t>(concurrent) - flying.size();
    for (std::size_t i = 0; i < room && next < tokens.size(); ++i, ++next, ++prefilled)
      flying.push_back({tokens[next] - 1, prompt});
    if (prefilled > 0) replica.prefills.push_back(prefilled);
    std::erase_if(flying, [](const Sample& one) { return one.left == 0; });
    if (next < tokens.size() && static_cast<std::int64_t>(flying.size()) < concurrent) continue;
    if (flying.empty()) return replica;
    std::int64_t cached = 0;
    for (Sample& one : flying) cached += one.cached++, --one.left;
    replica.steps.emplace_back(flying.size(), cached);
    std::erase_if(flying, [](const Sample& one) { return one.left == 0; });
  }
}

std::vector<std::pair<std::int64_t, std::int64_t>> steps_of(const Decoding& decoding) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  for (const Stretch& one : decoding.stretches)
    for (std::int64_t i = 0; i < one.steps; ++i) steps.emplace_back(one.samples, one.cached + i * one.samples);
  return steps;
}

std::vector<std::int64_t> drawn_tokens(std::uint64_t seed, std::size_t count, std::uint64_t most) {
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int64_t>(1 + core::decision_hash(seed, 0, i) % most));
  return tokens;
}

}  // namespace

TEST_CASE("a replica decodes what a plain loop over its steps decodes") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<std::int64_t> tokens = drawn_tokens(seed, seed % 40, 1 + seed % 23);
    const auto prompt = static_cast<std::int64_t>(1 + seed % 7), concurrent = static_cast<std::int64_t>(1 + seed % 11);
    const Decoding decoding = decoding_of(tokens, prompt, concurrent);
    const PlainReplica plain = plain_replica(tokens, prompt, concurrent);
    INFO("seed " << seed);
    CHECK(steps_of(decoding) == plain.steps);
    CHECK(decoding.prefills == plain.prefills);
    CHECK(decoding.steps() == static_cast<std::int64_t>(plain.steps.size()));
    std::int64_t most = 0;
    for (const auto& [samples, cached] : plain.steps) most = std::max(most, cached + samples);
    CHECK(decoding.most_cached == most);
  }
}

TEST_CASE("responses of one length are decoded in rounds") {
  const Decoding decoding = decoding_of(std::vector<std::int64_t>(6, 10), 100, 4);
  CHECK(decoding.stretches == std::vector<Stretch>{{4, 9, 400}, {2, 9, 200}});
  CHECK(decoding.prefills == std::vector<std::int64_t>{4, 2});
  CHECK(decoding.most_cached == 436);
}

TEST_CASE("every step of a rollout is inside the grid of simulated steps") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<Decoding> replicas;
    for (std::uint64_t one = 0; one < 3; ++one)
      replicas.push_back(decoding_of(drawn_tokens(100 * seed + one, 1 + seed, 50), 1 + static_cast<std::int64_t>(seed),
                                     1 + static_cast<std::int64_t>(seed % 19)));
    const DecodingGrid grid = decoding_grid(replicas);
    const auto holds = [&](std::size_t column, const Stretch& one) {
      return static_cast<double>(grid.lengths[column].front()) <= one.first_length() &&
             one.last_length() <= static_cast<double>(grid.lengths[column].back());
    };
    for (const Decoding& replica : replicas)
      for (const Stretch& one : replica.stretches) {
        const std::size_t below = grid.below(one.samples);
        INFO("seed " << seed << ", " << one.samples << " samples");
        REQUIRE(grid.samples[below] <= one.samples);
        CHECK(holds(below, one));
        if (grid.samples[below] == one.samples) continue;
        REQUIRE(below + 1 < grid.samples.size());
        CHECK(holds(below + 1, one));
      }
    for (const DecodingPoint& check : grid.checks) {
      CHECK(check.samples >= grid.samples.front());
      CHECK(check.samples <= grid.samples.back());
    }
  }
}

TEST_CASE("a rollout of single tokens has no decoding steps") {
  const Decoding decoding = decoding_of(std::vector<std::int64_t>(5, 1), 8, 2);
  CHECK(decoding.stretches.empty());
  CHECK(decoding.prefills == std::vector<std::int64_t>{2, 2, 1});
  CHECK(decoding_grid({decoding}).empty());
}

TEST_CASE("lognormal responses have the mean that is asked for, and none is longer than the limit") {
  ResponseLengths lengths;
  lengths.form = ResponseLengths::Form::lognormal;
  lengths.mean = 1000, lengths.sigma = 0.5;
  const auto mean = [](const std::vector<std::int64_t>& tokens) {
    return std::accumulate(tokens.begin(), tokens.end(), 0.0) / static_cast<double>(tokens.size());
  };
  const std::vector<std::int64_t> all = response_tokens(lengths, 4096, "");
  CHECK(std::abs(mean(all) / 1000 - 1) < 0.005);
  lengths.max_tokens = 1200;
  const std::vector<std::int64_t> cut = response_tokens(lengths, 4096, "");
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(cut[i] == std::min<std::int64_t>(all[i], 1200));
}

TEST_CASE("samples are dealt out to replicas in blocks that differ by one at most") {
  std::vector<std::int64_t> tokens(11);
  std::iota(tokens.begin(), tokens.end(), 1);
  const auto dealt = dealt_out(tokens, 4);
  CHECK(dealt == std::vector<std::vector<std::int64_t>>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11}});
}

}  // namespace manyworlds::experiments::phases
