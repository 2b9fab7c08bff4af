// What is said of layouts that do not fit, held against the plan of the layouts it names.
#include "farm/texts/memory_advice.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/settings/practice.hpp"
#include "experiments/validity/validity.hpp"
#include "farm/plan/plan.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

namespace {

/// One layout on H100s, and what `set` changes of it.
experiments::Sweep layout(const std::string& model, int nodes, const std::vector<std::string>& set = {}) {
  const std::string text = fmt::format(
      "base:\n  model: {{like: {}, sequence: 4096}}\n  cluster: {{like: dgx_h100_superpod, nodes: {}}}\n"
      "  topology: rail_optimized\n  strategy: {{global_batch: 512}}\n",
      model, nodes);
  static const experiments::Catalog catalog;
  return experiments::parse_sweep(text, "layout.yaml", set, catalog);
}

PlannedExperiment planned(const experiments::Experiment& experiment) {
  experiments::Sweep sweep = layout("llama3-8b", 1);
  sweep.experiments = {experiment};
  return make_plan(sweep).experiments.at(0);
}

/// The layout of a neighbour, with the switches that its change takes with it.
experiments::Experiment changed(experiments::Experiment layout, const FittingNeighbour& by) {
  for (const auto& [key, value] : by.changes) layout.settings[key] = value;
  const auto zero = std::get<std::int64_t>(layout.settings.at("strategy.zero"));
  if (zero == 0 || zero == 3) layout.settings["strategy.stack.overlap_parameters"] = false;
  layout.settings["strategy.sequence_parallel"] = std::get<std::int64_t>(layout.settings.at("strategy.tp")) > 1;
  return layout;
}

}  // namespace

TEST_CASE("what would make a layout fit does, as the plan sees it, and the quickest comes first") {
  const auto sweep = layout("llama3-70b", 8, {"tp=4", "pp=2"});
  const experiments::Experiment& large = sweep.experiments.front();
  REQUIRE_FALSE(planned(large).fits());
  const auto found = fitting_advice(large, 1'000).neighbours;
  REQUIRE_FALSE(found.empty());
  double before = -1;
  std::set<std::size_t> changes;
  for (const FittingNeighbour& one : found) {
    const PlannedExperiment result = planned(changed(large, one));
    CAPTURE(fitting_text({{one}, {}}));
    CHECK(result.fits());
    CHECK(result.memory.total() == one.needs_bytes);
    CHECK(result.memory_bytes == one.has_bytes);
    CHECK(one.step_change >= before);
    before = one.step_change;
    changes.insert(one.changes.size());
  }
  CHECK(changes.size() == 1);  // all with the fewest
  CHECK(fitting_advice(large, 2).neighbours.size() <= 2);
}

TEST_CASE("a model that fits on no layout of so few GPUs is offered more of them") {
  const auto sweep = layout("llama3-70b", 1, {"tp=8", "zero=0"});
  const FittingAdvice found = fitting_advice(sweep.experiments.front());
  REQUIRE(found.neighbours.size() == 1);
  CHECK(found.refused.empty());
  CHECK(found.neighbours.front().changes.front().first == "cluster.nodes");
  CHECK_THAT(fitting_text(found), Catch::Contains("cluster.nodes=") && Catch::Contains("strategy.zero=3"));
}

TEST_CASE("what rules refuse is not said to need too much memory") {
  CHECK(fitting_text({{}, {}, true}) == "no neighbouring layout fits, not even on 64 times as many machines\n");
  // Fused attention alone is recomputed, so that layers are not as a whole, and their 80 GiB of activations stay.
  const auto sweep = layout("deepseek-v4-flash", 2, {"recompute_modules=core_attn"});
  const FittingAdvice advice = fitting_advice(sweep.experiments.front());
  CHECK(advice.neighbours.empty());
  const auto recompute = std::find_if(advice.refused.begin(), advice.refused.end(), [](const RefusedNeighbours& one) {
    return one.rule == "recompute_modules_beside";
  });
  REQUIRE(recompute != advice.refused.end());
  REQUIRE(recompute->changes.size() == 1);
  CHECK(recompute->changes.front().first == "strategy.recompute");
  CHECK(advice.tried_more_nodes);  // with sharded states alone
  CHECK_THAT(fitting_text(advice),
             Catch::StartsWith("no neighbouring layout that the rules allow fits, not even on 64 times as many "
                               "machines; they refuse\n") &&
                 Catch::Contains("  strategy.recompute=full ") && Catch::Contains("recompute_modules_beside: ") &&
                 Catch::Contains("recompute full"));
  experiments::GraphCache graphs;
  for (const RefusedNeighbours& one : advice.refused)
    for (const auto& [key, value] : one.changes) {
      CAPTURE(key);
      if (key == "cluster.nodes") continue;  // with other changes
      auto settings = sweep.experiments.front().settings;
      experiments::change_setting(settings, key, value);
      const auto violation = experiments::find_violation(experiments::config_of(settings), graphs);
      REQUIRE(violation);
      CHECK(violation->rule == one.rule);
    }
}
