// Routers that limit groups of experts: the parts that a token reaches against all choices, sums and drawn tokens.
#include "core/workload/model/group_limits.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "core/workload/parts/routed_experts.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model router(std::int64_t experts, std::int64_t per_token, std::int64_t groups, std::int64_t groups_per_token) {
  Model model = llama(2, 512, 8, 4, 1'024, 3'000);
  model.experts = experts, model.experts_per_token = per_token;
  model.expert_groups = groups, model.groups_per_token = groups_per_token;
  model.expert_ffn_hidden = 256;
  return model;
}

/// Returns all sets of `size` of the numbers from 0 to below `count`, each ascending.
std::vector<std::vector<std::int64_t>> all_sets(std::int64_t count, std::int64_t size) {
  std::vector<bool> chosen(static_cast<std::size_t>(count), false);
  std::fill_n(chosen.begin(), size, true);
  std::vector<std::vector<std::int64_t>> all;
  do {
    std::vector<std::int64_t>& set = all.emplace_back();
    for (std::int64_t i = 0; i < count; ++i)
      if (chosen[static_cast<std::size_t>(i)]) set.push_back(i);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return all;
}

std::int64_t parts_of(const std::vector<std::int64_t>& experts, std::int64_t all, std::int64_t parts) {
  std::set<std::int64_t> reached;
  for (const std::int64_t expert : experts) reached.insert(expert * parts / all);
  return static_cast<std::int64_t>(reached.size());
}

/// Returns the experts of these groups.
std::vector<std::int64_t> experts_in(const std::vector<std::int64_t>& groups, std::int64_t group_size) {
  std::vector<std::int64_t> experts;
  for (const std::int64_t group : groups)
    for (std::int64_t i = 0; i < group_size; ++i) experts.push_back(group * group_size + i);
  return experts;
}

double over_all_choices(const Model& model, std::int64_t parts) {
  const std::int64_t group_size = model.experts / model.expert_groups;
  std::int64_t reached = 0, choices = 0;
  for (const auto& groups : all_sets(model.expert_groups, model.groups_per_token)) {
    const std::vector<std::int64_t> experts = experts_in(groups, group_size);
    for (const auto& places : all_sets(std::ssize(experts), model.experts_per_token)) {
      std::vector<std::int64_t> chosen;
      for (const std::int64_t place : places) chosen.push_back(experts[static_cast<std::size_t>(place)]);
      reached += parts_of(chosen, model.experts, parts), ++choices;
    }
  }
  return static_cast<double>(reached) / static_cast<double>(choices);
}

double binomial(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  double result = 1;
  for (std::int64_t i = 1; i <= k; ++i) result = result * static_cast<double>(n - k + i) / static_cast<double>(i);
  return result;
}

}  // namespace

TEST_CASE("a token with its experts in some groups reaches as many parts as over all of its choices") {
  // Twelve experts in groups of two to six; parts of one to twelve, some within groups, some of several, some across
  // the ends of groups (parts of four beside groups of three, of three beside groups of four or two).
  for (const std::int64_t groups : {2, 3, 4, 6})
    for (std::int64_t limit = 1; limit < groups; ++limit)
      for (std::int64_t per_token = 1; per_token <= std::min<std::int64_t>(4, 12 / groups * limit); ++per_token)
        for (const std::int64_t parts : {1, 2, 3, 4, 6, 12}) {
          CAPTURE(groups, limit, per_token, parts);
          const Model model = router(12, per_token, groups, limit);
          REQUIRE(limits_groups(model));
          CHECK(mean_parts_reached(model, parts) == Approx(over_all_choices(model, parts)).epsilon(1e-12));
        }
  // Parts that do not divide the experts are as equal as they can be.
  for (const std::int64_t parts : {5, 7, 8}) {
    const Model model = router(12, 3, 4, 2);
    std::vector<std::int64_t> first;
    for (std::int64_t part = 0; part <= parts; ++part) first.push_back(part * 12 / parts);
    double reached = 0;
    std::int64_t choices = 0;
    for (const auto& taken : all_sets(4, 2))
      for (const auto& places : all_sets(6, 3)) {
        const std::vector<std::int64_t> experts = experts_in(taken, 3);
        std::set<std::ptrdiff_t> hit;
        for (const std::int64_t place : places)
          hit.insert(std::upper_bound(first.begin(), first.end(), experts[static_cast<std::size_t>(place)]) -
                     first.begin());
        reached += static_cast<double>(hit.size()), ++choices;
      }
    CHECK(mean_parts_reached(model, parts) == Approx(reached / static_cast<double>(choices)).epsilon(1e-12));
  }
}

TEST_CASE("DeepSeek-V3's tokens reach 3.6 of 8 nodes instead of 5.3, and 7.4 of 64 ranks instead of 7.7") {
  // 256 experts in 8 groups, of which a token has 4, and 8 experts; 64 ranks, 8 of a node (arXiv 2412.19437, sections
  // 2.1.2 and 3.2.2), so that a group is a node's.
  const Model model = router(256, 8, 8, 4);
  CHECK(mean_parts_reached(model, 8) == Approx(4 * (1 - binomial(96, 8) / binomial(128, 8))));
  CHECK(mean_parts_reached(model, 64) == Approx(64 * 0.5 * (1 - binomial(124, 8) / binomial(128, 8))));
  CHECK(mean_parts_reached(model, 8) == Approx(3.629).margin(5e-4));
  CHECK(mean_parts_reached(model, 64) == Approx(7.359).margin(5e-4));
  CHECK(mean_parts_reached(router(256, 8, 1, 0), 8) == Approx(5.295).margin(5e-4));
  CHECK(mean_parts_reached(router(256, 8, 1, 0), 64) == Approx(7.676).margin(5e-4));
  for (const std::int64_t parts : {2, 4}) {  // of several groups: the groups that a part has of the token's
    const std::int64_t own = 8 / parts;
    double miss = 0;
    for (std::int64_t taken = 0; taken <= 4; ++taken)
      miss += binomial(own, taken) * binomial(8 - own, 4 - taken) / binomial(8, 4) * binomial(128 - 32 * taken, 8) /
              binomial(128, 8);
    CHECK(mean_parts_reached(model, parts) == Approx(static_cast<double>(parts) * (1 - miss)));
  }
}

TEST_CASE("drawn tokens reach as many parts on average") {
  std::mt19937_64 random(7);
  constexpr int kTokens = 20'000;
  for (const Model& model : {router(256, 8, 8, 4), router(160, 6, 8, 3)})
    for (const std::int64_t parts : {8, 10, 32}) {
      if (model.experts % parts != 0) continue;
      double sum = 0;
      std::vector<std::int64_t> groups(static_cast<std::size_t>(model.expert_groups));
      std::iota(groups.begin(), groups.end(), 0);
      for (int token = 0; token < kTokens; ++token) {
        std::shuffle(groups.begin(), groups.end(), random);
        std::vector<std::int64_t> experts =
            experts_in({groups.begin(), groups.begin() + model.groups_per_token}, model.experts / model.expert_groups);
        std::shuffle(experts.begin(), experts.end(), random);
        experts.resize(static_cast<std::size_t>(model.experts_per_token));
        sum += static_cast<double>(parts_of(experts, model.experts, parts));
      }
      CAPTURE(model.experts, parts);
      // A token's number varies by less than one part: five standard errors.
      CHECK(mean_parts_reached(model, parts) ==
            Approx(sum / kTokens).margin(5 / std::sqrt(static_cast<double>(kTokens))));
    }
}

TEST_CASE("where groups are parts, a token has its experts among those of so many parts") {
  // As tables of exchanges have it, whose router limits nodes.
  for (const std::int64_t limit : {1, 2, 5})
    CHECK(mean_parts_reached(router(64, 4, 8, limit), 8) == Approx(mean_parts_reached(limit * 8, 4, limit)));
}

TEST_CASE("a router that may take all groups, or has one, is one without groups") {
  const Model without = router(16, 2, 1, 0);
  for (const auto& [groups, limit] : {std::pair{1, 1}, {4, 0}, {4, 4}}) {
    const Model model = router(16, 2, groups, limit);
    CHECK_FALSE(limits_groups(model));
    for (const std::int64_t parts : {2, 8})
      CHECK(mean_parts_reached(model, parts) == mean_parts_reached(without, parts));
  }
  CHECK_FALSE(limits_groups(llama(2, 512, 8, 4, 1'024, 3'000)));
}

TEST_CASE(
    "limits of groups send fewer rows where a token is sent once to a rank, and as many where each copy is sent") {
  Strategy strategy = layout(1, 1, 2, 2 * 4 * 3);
  strategy.dp = 4, strategy.ep = 4;
  const auto bytes = [&](const Model& model) {
    return bytes_by_kind(build_program(model, strategy, round_gpu(), 0), Role::expert);
  };
  const Model free = router(16, 2, 1, 0), limited = router(16, 2, 4, 1);
  CHECK(bytes(limited) == bytes(free));
  strategy.stack.dispatcher = Dispatcher::hybrid_ep;
  // Both experts of a token lie on one rank: a row each way, in two layers of three micro-batches, forward and
  // backward.
  const std::int64_t rows = 2 * limited.sequence;
  CHECK(bytes(limited) == BytesByKind{{collective::Kind::all_to_all, 4 * 2 * 3 * 2 * rows * limited.hidden}});
  CHECK(bytes(limited) != bytes(free));
}
