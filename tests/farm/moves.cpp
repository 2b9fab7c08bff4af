// Moves through a space: their neighbours against the rules that these must keep, and what a walk finds against
// looking at every point.
#include "farm/moves/walk.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "farm/best/minimised_objective.hpp"
#include "farm/moves/moves_report.hpp"
#include "farm/plan/footprints.hpp"
#include "farm/plan/plan.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using experiments::Space;

namespace {

const std::string kStages =
    "name: stages\n"
    "assume: 2021\n"
    "base:\n"
    "  model: {like: gpt3-1.3b, layers: 5}\n"
    "  cluster: {like: dgx_a100_superpod, nodes: 1, gpu: {like: a100_40, memory_gib: 8}}\n"
    "  topology: rail_optimized\n"
    "  strategy: {global_batch: 64, micro_batch: 4, stack: megatron-core, zero: 1}\n"
    "axes:\n"
    "  strategy.pp: [2, 4]\n"
    "  strategy.stage_layers: any\n"
    "  strategy.stage_recompute_layers: any\n"
    "  strategy.recompute: [none, full]\n"
    "  strategy.bucket_parameters: [5000000, 40000000, 160000000]\n"
    "objective: step_time_s\n";

const experiments::Catalog& catalog() {
  static const experiments::Catalog all;
  return all;
}

Space space_of(const std::string& text, const std::vector<std::string>& set) {
  Space space(text, "stages.yaml", set, catalog());
  experiments::Sweep asked = space.sweep();
  asked.best = 1;
  space.ask_for_best(asked);
  space.prepare();
  return space;
}

Space stages(const std::vector<std::string>& set = {}) {
  return space_of(kStages, set);
}

constexpr std::size_t kPp = 0, kLayers = 1, kRecomputed = 2, kRecompute = 3;  // factors

/// Returns a position of pp 2: all that fits of it, but with few layers on one rank.
Position uneven() {
  return {{0, Space::kOpen, Space::kOpen, 1, 0}, {1, 4}, {1, 4}};
}

/// Returns the document with every list of layers that some pipeline may have in the place of any.
std::string with_all_lists() {
  std::string layers, recomputed = "none";
  const auto add = [](std::string& to, const std::vector<int>& list) {
    std::string text;
    for (const int one : list) text += (text.empty() ? "" : "+") + std::to_string(one);
    to += (to.empty() ? "" : ", ") + text;
  };
  for (int a = 0; a <= 5; ++a)
    for (int b = 0; a + b <= 5; ++b) {
      if (a + b == 5) add(layers, {a, b});
      add(recomputed, {a, b});
      for (int c = 0; a + b + c <= 5; ++c) {
        add(layers, {a, b, c, 5 - a - b - c});
        for (int d = 0; a + b + c + d <= 5; ++d) add(recomputed, {a, b, c, d});
      }
    }
  std::string text = kStages;
  const std::string any = ": any\n";
  text.replace(text.find(any), any.size(), ": [" + layers + "]\n");
  text.replace(text.find(any), any.size(), ": [" + recomputed + "]\n");
  return text;
}

/// Returns the least analytic step of all points that fit, in seconds, as a plain loop over the lists finds it.
double least_step_s() {
  const experiments::Sweep sweep =
      experiments::parse_sweep(with_all_lists(), "stages.yaml", {}, catalog(), {.max_points = 10'000'000});
  experiments::GraphCache graphs;
  Footprints footprints;
  core::step::SimulationContext context;
  core::step::IsolatedResults known;
  double least = 1e9;
  std::size_t fitting = 0;
  for (const auto& one : sweep.experiments) {
    const core::step::Configuration configuration = configure(one, graphs);
    const auto memory = footprints.requirement_of(configuration);
    if (memory.required.total() > memory.memory_bytes()) continue;
    least = std::min(least, core::seconds(analytic_step(configuration, context, known).step_ps));
    ++fitting;
  }
  CAPTURE(sweep.experiments.size(), fitting);
  CHECK(fitting > 500);
  CHECK(fitting < sweep.experiments.size());
  return least;
}

struct Walked {
  Position best;
  double value = 0;
  MoveCounts counts;
};

/// Walks from uneven() over analytic steps.
Walked walked(Space& space, const WalkLimits& limits) {
  PointBounds steps(space);
  const auto value_of = [&](const Space::Point& point) { return steps.analytic_value_of(point); };
  Neighbourhood neighbourhood(space);
  Walk walk(space, {{uneven(), value_of(neighbourhood.point_of(uneven(), space))}}, limits);
  while (!walk.over()) {
    const std::vector<Position> drawn = walk.draw();
    CHECK(drawn.size() <= limits.at_once);
    std::vector<double> values;
    for (const Space::Point& point : walk.points_of(drawn, space)) values.push_back(value_of(point));
    walk.settle(drawn, values);
  }
  return {walk.best(), walk.best_value(), walk.counts()};
}

}  // namespace

TEST_CASE("moves from a poor point of stages with any layers find the best of all points") {
  Space space = stages();
  const Walked walk = walked(space, {.moves = 3'000, .seed = 1, .threshold = 0.05});
  CHECK(walk.value == Approx(least_step_s()).epsilon(1e-12));
  const MoveCounts& counts = walk.counts;
  CHECK(counts.drawn == 3'000);
  CHECK(counts.excluded + counts.too_large + counts.met + counts.behind_sums + counts.behind_analytic +
            counts.simulated ==
        counts.drawn);
  // Bounds save most of the simulations.
  CHECK(counts.simulated < counts.drawn / 3);
  CHECK(counts.too_large > 0);
  CHECK(counts.behind_sums + counts.behind_analytic > 0);
}

TEST_CASE("a walk is the same for the same seed") {
  const WalkLimits limits{.moves = 200, .seed = 7, .threshold = 0.02};
  Space space = stages(), same = stages(), other = stages();
  const Walked walk = walked(space, limits), again = walked(same, limits);
  CHECK(walk.best == again.best);
  CHECK(walk.value == again.value);
  CHECK(walk.counts.simulated == again.counts.simulated);
  CHECK(walk.counts.met == again.counts.met);
  const Walked another = walked(other, {.moves = 200, .seed = 8, .threshold = 0.02});
  CHECK((another.counts.met != walk.counts.met || another.counts.simulated != walk.counts.simulated));
}

TEST_CASE("a neighbour differs in one axis, in layers of two ranks, or in what recomputes, and keeps all layers") {
  Space space = stages();
  Neighbourhood neighbourhood(space);
  PointBounds bounds(space);
  Draws draws(3);
  Position from = uneven();
  std::size_t axes = 0, layers = 0, recomputed = 0, valid = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto neighbour = neighbourhood.neighbour(from, draws);
    REQUIRE(neighbour);
    if (neighbour->refusal != Refusal::none) continue;
    const Position& to = neighbour->position;
    const std::size_t ranks = to.axes[kPp] == 0 ? 2 : 4;
    REQUIRE(to.layers.size() == ranks);
    CHECK(std::accumulate(to.layers.begin(), to.layers.end(), std::int64_t{0}) == 5);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const bool has_embedding_or_head = rank == 0 || rank + 1 == ranks;
      CHECK(to.layers[rank] >= (has_embedding_or_head ? 0 : 1));
    }
    REQUIRE(to.recomputed.size() == (to.axes[kRecompute] == 0 ? 0 : ranks));
    for (std::size_t rank = 0; rank < to.recomputed.size(); ++rank) {
      CHECK(to.recomputed[rank] >= 0);
      CHECK(to.recomputed[rank] <= to.layers[rank]);
    }
    CHECK(to.axes[kLayers] == Space::kOpen);
    CHECK(to.axes[kRecomputed] == Space::kOpen);
    std::size_t moved_axes = 0, moved_layers = 0;
    for (std::size_t factor = 0; factor < to.axes.size(); ++factor) moved_axes += to.axes[factor] != from.axes[factor];
    REQUIRE(moved_axes <= 1);
    if (moved_axes == 0)
      for (std::size_t rank = 0; rank < ranks; ++rank) moved_layers += to.layers[rank] != from.layers[rank];
    CHECK((moved_layers == 0 || moved_layers == 2));
    axes += moved_axes, layers += moved_layers / 2;
    recomputed += moved_axes + moved_layers == 0;
    // Listed stages are what rules demand of them.
    CHECK(bounds.why_excluded(neighbourhood.point_of(to, space)).empty());
    ++valid;
    from = to;
  }
  CHECK(valid > 1'000);
  CHECK(axes > 100);
  CHECK(layers > 100);
  CHECK(recomputed > 100);
}

TEST_CASE("where a pipeline has other ranks, the bound chooses the layers of its stages") {
  Space space = stages();
  Neighbourhood neighbourhood(space);
  Draws draws(1);
  bool found = false;
  for (int i = 0; i < 200 && !found; ++i) {
    const auto neighbour = neighbourhood.neighbour(uneven(), draws);
    if (neighbour->refusal != Refusal::none || neighbour->position.axes[kPp] != 1) continue;
    found = true;
    // Four ranks with five layers: one or two each, those with embedding or head none to two.
    CHECK(*std::max_element(neighbour->position.layers.begin(), neighbour->position.layers.end()) == 2);
  }
  CHECK(found);
}

TEST_CASE("a space of a single point has no neighbours, and its walk ends") {
  Space space = stages({"strategy.pp=2", "strategy.stage_layers=none", "strategy.stage_recompute_layers=none",
                        "strategy.recompute=full", "strategy.bucket_parameters=40000000", "model.layers=6"});
  Walk walk(space, {{{{0, 0, 0, 0, 0}, {}, {}}, 1.0}}, {});
  CHECK_FALSE(walk.over());
  CHECK(walk.draw().empty());
  CHECK(walk.over());
  CHECK(walk.counts().drawn == 0);
}

TEST_CASE("thresholds fall with the moves, and a walk without a better best returns to it") {
  std::string text = kStages;
  const std::string buckets = "[5000000, 40000000, 160000000]";
  text.replace(text.find(buckets), buckets.size(), "{range: [1000000, 200000000, '+1000000']}");
  Space space =
      space_of(text, {"strategy.stage_layers=none", "strategy.stage_recompute_layers=none", "model.layers=8"});
  Walk walk(space, {{{{0, 0, 0, 1, 100}, {}, {}}, 100.0}},
            {.moves = 64, .at_once = 4, .threshold = 0.1, .patience = 2});
  std::vector<Position> drawn = walk.draw();
  REQUIRE(drawn.size() == 4);
  CHECK(walk.threshold() == 0.1);
  // The best of a round leads on if it is worse by less than the threshold.
  walk.settle(drawn, {120, 109, 108, std::numeric_limits<double>::infinity()});
  CHECK(walk.best_value() == 100);
  CHECK(walk.counts().accepted == 1);
  CHECK(walk.counts().failed == 1);
  const auto left = static_cast<double>(64 - walk.counts().drawn);
  drawn = walk.draw();
  CHECK(walk.threshold() == Approx(0.1 * left / 64));
  walk.settle(drawn, std::vector<double>(drawn.size(), 130.0));  // worse than any that is accepted
  CHECK(walk.counts().accepted == 1);
  CHECK(walk.counts().returns == 1);
  drawn = walk.draw();
  REQUIRE(!drawn.empty());
  std::vector<double> values(drawn.size(), 130.0);
  values.back() = 99;
  walk.settle(drawn, values);
  CHECK(walk.best_value() == 99);
  CHECK(walk.best() == drawn.back());
}

TEST_CASE("what a search by moves found is told with the gap to the bound, whatever is better") {
  MoveFindings found;
  found.name = "mine", found.objective = "tokens_per_s_per_gpu", found.unit = "tokens/s";
  found.before = {1000, 2.0, "runs/mine", 3};
  found.best = {1050, 1.9, "runs/mine.search/moves-2-abcdef", 1};
  found.bound = 1071;
  found.gap = 0.01;
  found.counts.drawn = 10, found.counts.simulated = 4, found.counts.met = 6;
  CHECK(found.gap_of(found.before).value() == Approx(0.071));
  CHECK(found.gap_of(found.best).value() == Approx(0.02));
  CHECK(found.gain() == Approx(0.05));
  CHECK_FALSE(found.proven());
  found.run_arguments = {"--set", "strategy.tp=8"};
  const std::string text = moves_text(found, {"manyworlds", "run", "my space.yaml"});
  CHECK_THAT(text, Catch::Contains("gain of the moves: 5 %"));
  CHECK_THAT(text, Catch::Contains("not proven: another may be better by 2.00 % at most"));
  CHECK_THAT(text, Catch::EndsWith("manyworlds run 'my space.yaml' --set strategy.tp=8\n"));
  CHECK(moves_json(found).at("best").at("gap").get<double>() == Approx(0.02));
  // Of a time less is better: 1.9 s is 5 % better than 2 s.
  found.objective = "step_time_s", found.unit = "s";
  found.before.value = 2.0, found.best.value = 1.9, found.bound = 1.881, found.gap = 0.02;
  CHECK(found.gain() == Approx(0.05));
  CHECK(found.gap_of(found.best).value() == Approx(0.01));
  CHECK(found.proven());
  found.bound = std::nullopt;
  CHECK_FALSE(found.proven());
  CHECK(moves_json(found).at("bound").is_null());
}
