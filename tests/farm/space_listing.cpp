// Spaces that are not listed: what branch and bound finds, against looking at every point.
#include "farm/search/space_listing.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "farm/plan/footprints.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::Space;

namespace {

const std::string kText =
    "name: little\n"
    "assume: 2021\n"
    "base:\n"
    "  model: {like: gpt3-1.3b, layers: 8}\n"
    "  cluster: {like: dgx_h100_superpod, nodes: 4}\n"
    "  topology: rail_optimized\n"
    "  strategy: {global_batch: 64, stack: megatron-core}\n"
    "axes:\n"
    "  strategy.tp: [1, 2, 8]\n"
    "  strategy.pp: [1, 2, 4]\n"
    "  strategy.micro_batch: [1, 2, 16]\n"
    "  strategy.recompute: [none, selective, full]\n"
    "  strategy.overlap_grad_reduce: [true, false]\n"
    "  transport.seed: [1, 2]\n"
    "zip:\n"
    "  - {strategy.zero: [0, 1, 1, 2, 3], strategy.stack.overlap_parameters: [false, false, true, true, false]}\n"
    "  - {strategy.schedule: [1f1b, interleaved, zb_h1], strategy.virtual_stages: [1, 2, 1]}\n"
    "where: ['strategy.zero < 3 or strategy.recompute == none']\n";

const experiments::Catalog& catalog() {
  static const experiments::Catalog all;
  return all;
}

Space space_of(double gap = 0) {
  Space space(kText, "little.yaml", {}, catalog());
  experiments::Sweep asked = space.sweep();
  asked.best = 1, asked.gap = gap;
  space.ask_for_best(asked);
  return space;
}

using Row = std::vector<core::OptionValue>;

/// Returns rates of all points that fit, at most, by their axes, as a plain loop over the whole sweep finds them.
std::vector<std::pair<double, Row>> all_bounds() {
  const experiments::Sweep sweep = experiments::parse_sweep(kText, "little.yaml", {}, catalog());
  experiments::GraphCache graphs;
  experiments::ConfigReader reader;
  Footprints footprints;
  std::vector<std::pair<double, Row>> all;
  for (const auto& one : sweep.experiments) {
    const core::step::Configuration configuration = configure(one, graphs, reader);
    const auto memory = footprints.requirement_of(configuration);
    if (memory.required.total() > memory.memory_bytes()) continue;
    const core::workload::Strategy& s = configuration.strategy;
    const auto tokens = static_cast<double>(s.global_batch * configuration.model.sequence);
    all.emplace_back(tokens / static_cast<double>(s.tp * s.cp * s.pp * s.dp) /
                         core::seconds(core::step::lower_bound_ps(configuration)),
                     one.axes);
  }
  std::sort(all.begin(), all.end(), std::greater<>());
  return all;
}

std::set<Row> rows_of(const experiments::Sweep& sweep) {
  std::set<Row> rows;
  for (const auto& one : sweep.experiments) rows.insert(one.axes);
  return rows;
}

}  // namespace

TEST_CASE("the points that branch and bound lists are those with the best bounds of all") {
  {
    const auto all = all_bounds();
    REQUIRE(all.size() > 300);
    for (const std::size_t points : {1u, 10u, 100u, 100'000u}) {
      // Pilots behind the last point: no cutoff.
      const experiments::Sweep sweep = list_best(space_of(), {.points = points, .pilots = SIZE_MAX});
      const std::set<Row> listed = rows_of(sweep);
      CAPTURE(points, listed.size(), all.size());
      CHECK(listed.size() == std::min(points, all.size()));
      for (const auto& [rate, row] : all) {
        if (rate > all[listed.size() - 1].first * (1 + 1e-12)) CHECK(listed.contains(row));
        if (rate < all[listed.size() - 1].first * (1 - 1e-12)) CHECK_FALSE(listed.contains(row));
      }
      REQUIRE(sweep.space);
      CHECK(sweep.space->points == 3 * 3 * 3 * 3 * 2 * 2 * 5 * 3);
      REQUIRE(sweep.space->bound.has_value() == (listed.size() < all.size()));
      if (sweep.space->bound) CHECK(*sweep.space->bound == Approx(all[listed.size()].first).epsilon(1e-9));
      CHECK(sweep.best == 1);
    }
  }
}

TEST_CASE("branch and bound opens a part of a space, and stops behind what its first analytic steps leave open") {
  const auto all = all_bounds();
  const experiments::Sweep sweep = list_best(space_of(), {.points = 100'000, .pilots = 4, .margin = 0.05});
  CHECK(sweep.experiments.size() < all.size() / 2);
  CHECK(sweep.space->looked_at < sweep.space->points / 2);
  REQUIRE(sweep.space->bound);
  for (const auto& [rate, row] : all)
    if (!rows_of(sweep).contains(row)) CHECK(rate <= *sweep.space->bound * (1 + 1e-9));
  // A gap lists fewer.
  const experiments::Sweep with_gap = list_best(space_of(0.04), {.points = 100'000, .pilots = 4, .margin = 0.05});
  CHECK(with_gap.experiments.size() < sweep.experiments.size());
}

TEST_CASE("what an open point excludes, all that it stands for is excluded by, and none has a better bound") {
  Space space = space_of();
  space.prepare();
  Space::Viewer viewer(space);
  std::mt19937 random(1);
  core::step::LowerBounds bounds;
  std::size_t compared = 0, excluded = 0;
  for (int i = 0; i < 5'000; ++i) {
    Space::Point point, open;
    for (std::size_t factor = 0; factor < space.factors(); ++factor) {
      point.push_back(static_cast<std::uint16_t>(random() % space.size_of(factor)));
      open.push_back(space.can_stay_open(factor) && random() % 2 == 0 ? Space::kOpen : point.back());
    }
    const auto one = viewer.experiment_of(point), many = viewer.experiment_of(open);
    if (!many) {
      CHECK_FALSE(one);
      ++excluded;
    }
    if (!one || !many) continue;
    const auto replicas =
        space.open_keys_of(open).replicas ? core::step::Replicas::open : core::step::Replicas::counted;
    CHECK(bounds.of(viewer.configuration_of(*many), replicas) <= bounds.of(viewer.configuration_of(*one)));
    ++compared;
  }
  CHECK(compared > 500);
  CHECK(excluded > 100);
}

namespace {

const std::string kAny =
    "name: stages\n"
    "assume: 2021\n"
    "base:\n"
    "  model: {like: gpt3-1.3b, layers: 6}\n"
    "  cluster: {like: dgx_a100_superpod, nodes: 2, gpu: {like: a100_40, memory_gib: 6}}\n"
    "  topology: rail_optimized\n"
    "  strategy: {global_batch: 512, micro_batch: 4, stack: megatron-core}\n"
    "axes:\n"
    "  strategy.pp: [1, 2, 4]\n"
    "  strategy.stage_layers: any\n"
    "  strategy.stage_recompute_layers: any\n"
    "  strategy.recompute: [none, full]\n"
    "  strategy.zero: [1, 2]\n";

/// Returns the document with every list of layers that some pipeline may have in the place of any.
std::string with_all_lists(std::string text) {
  std::string layers, recomputed = "none, 0";
  for (int a = 0; a <= 6; ++a) {
    layers += std::string(a > 0 ? ", " : "") + std::to_string(a) + "+" + std::to_string(6 - a);
    for (int b = 0; a + b <= 6; ++b) {
      recomputed += ", " + std::to_string(a) + "+" + std::to_string(b);
      for (int c = 0; a + b + c <= 6; ++c) {
        const std::string list = std::to_string(a) + "+" + std::to_string(b) + "+" + std::to_string(c) + "+";
        for (int d = 0; a + b + c + d <= 6; ++d) recomputed += ", " + list + std::to_string(d);
        layers += ", " + list + std::to_string(6 - a - b - c);
      }
    }
  }
  for (int a = 1; a <= 6; ++a) recomputed += ", " + std::to_string(a);
  const std::string any = ": any\n";
  text.replace(text.find(any), any.size(), ": [6, " + layers + "]\n");
  text.replace(text.find(any), any.size(), ": [" + recomputed + "]\n");
  return text;
}

}  // namespace

TEST_CASE("of stages with any layers the best are listed, with a bound of all others") {
  Space space(kAny, "stages.yaml", {}, catalog());
  experiments::Sweep asked = space.sweep();
  asked.best = 1;
  space.ask_for_best(asked);
  const experiments::Sweep sweep = list_best(std::move(space), {.points = 100'000, .pilots = SIZE_MAX});
  // Each pipeline, kind of recomputation and stage of ZeRO that fits, with what is best for its stages.
  REQUIRE(sweep.experiments.size() >= 6);
  REQUIRE(sweep.space->bound);
  experiments::GraphCache graphs;
  experiments::ConfigReader reader;
  Footprints footprints;
  const auto rates_of = [&](const experiments::Sweep& listed) {
    std::map<std::tuple<std::int64_t, std::string, std::int64_t>, double> best;
    for (const auto& one : listed.experiments) {
      const core::step::Configuration configuration = configure(one, graphs, reader);
      const auto memory = footprints.requirement_of(configuration);
      if (memory.required.total() > memory.memory_bytes()) continue;
      const core::workload::Strategy& s = configuration.strategy;
      const auto tokens = static_cast<double>(s.global_batch * configuration.model.sequence);
      double& rate = best[{s.pp, one.settings.text("strategy.recompute"), s.zero}];
      rate = std::max(rate, tokens / static_cast<double>(s.tp * s.cp * s.pp * s.dp) /
                                core::seconds(core::step::lower_bound_ps(configuration)));
    }
    return best;
  };
  const auto listed = rates_of(sweep);
  CHECK(listed.size() == sweep.experiments.size());
  const experiments::Sweep every =
      experiments::parse_sweep(with_all_lists(kAny), "stages.yaml", {}, catalog(), {.max_points = 10'000'000});
  const auto all = rates_of(every);
  CHECK(every.experiments.size() > 2'000);
  CHECK(all.size() == listed.size());
  double recomputing = 0;
  for (const auto& [group, rate] : all) {
    CAPTURE(std::get<0>(group), std::get<1>(group), std::get<2>(group));
    CHECK(rate <= *sweep.space->bound * (1 + 1e-9));
    REQUIRE(listed.contains(group));
    CHECK(listed.at(group) >= 0.97 * rate);
    CHECK(listed.at(group) <= rate * (1 + 1e-9));
  }
  for (const auto& one : sweep.experiments)
    recomputing += one.settings.text("strategy.stage_recompute_layers").find_first_of("123456") != std::string::npos;
  CHECK(recomputing > 0);
  CHECK(sweep.space->points > 2'000);
}

TEST_CASE("stages may have any layers where the best are asked for, in a schedule that does not fix them") {
  CHECK_THROWS_WITH(experiments::parse_sweep(kAny, "stages.yaml", {}, catalog()),
                    Catch::Contains("stages.yaml:10:") && Catch::Contains("where the best are asked for (best: K)"));
  CHECK_THROWS_WITH(
      list_best(Space(kAny, "stages.yaml", {"strategy.schedule=dualpipe", "strategy.virtual_stages=2"}, catalog())),
      Catch::Contains("under schedule dualpipe: two ranks hold the same layers"));
  const auto sweep = experiments::parse_sweep(
      kAny, "stages.yaml", {"strategy.stage_layers=none", "strategy.stage_recompute_layers=none"}, catalog());
  CHECK(sweep.experiments.size() == 8);  // six layers are no multiple of four
}

TEST_CASE("a space that bounds cannot narrow is refused, and so is one of which nothing fits") {
  const auto up_to = [](int last) {
    std::string values = "1";
    for (int i = 2; i <= last; ++i) values += ", " + std::to_string(i);
    return values;
  };
  const std::string text =
      "base: {model: gpt3-1.3b, cluster: {like: dgx_h100_superpod, nodes: 4}}\n"
      "axes: {strategy.global_batch: [" +
      up_to(9'000) + "], strategy.micro_batch: [" + up_to(1'000) + "]}\n";
  CHECK_THROWS_WITH(list_best(Space(text, "wide.yaml", {}, catalog())), Catch::Contains("even with the keys left out"));
  const std::string large =
      "base: {model: gpt3-175b, cluster: {like: dgx_h100_superpod, nodes: 1}, strategy: {global_batch: 8}}\n"
      "axes: {strategy.tp: [1, 2]}\n";
  CHECK_THROWS_WITH(list_best(Space(large, "large.yaml", {}, catalog())), Catch::Contains("fits into memory"));
}
