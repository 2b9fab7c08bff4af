// The best layers and recomputation of each stage, beside every choice that there is.
#include "core/step/estimate/best_stages.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using step::StageChoices;

namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

/// Returns all lists of `count` numbers, each from `least` to `most`, that sum to `sum`; negative: to anything.
Lists lists_of(std::int64_t count, std::int64_t sum, const std::function<std::int64_t(std::int64_t)>& least,
               const std::function<std::int64_t(std::int64_t)>& most) {
  Lists result;
  std::vector<std::int64_t> list;
  const std::function<void(std::int64_t)> extend = [&](std::int64_t left) {
    const std::int64_t place = std::ssize(list);
    if (place == count) {
      if (sum < 0 || left == 0) result.push_back(list);
      return;
    }
    for (std::int64_t one = least(place); one <= most(place) && (sum < 0 || one <= left); ++one) {
      list.push_back(one);
      extend(left - one);
      list.pop_back();
    }
  };
  extend(sum);
  return result;
}

/// Deals out what each rank has to its chunks, in turns.
std::vector<std::int64_t> by_virtual_stage(const workload::Strategy& s, const std::vector<std::int64_t>& by_rank) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(s.stages().count()), 0);
  for (std::int64_t rank = 0; rank < s.pp; ++rank)
    for (std::int64_t i = 0; i < by_rank[static_cast<std::size_t>(rank)]; ++i)
      ++result[static_cast<std::size_t>(s.stages().of(rank, i % s.virtual_stages))];
  return result;
}

/// Calls `visit` with every choice, whether it fits or not.
std::size_t visit_choices(const step::Configuration& configuration,
                          const std::function<void(step::Configuration)>& visit) {
  const workload::Strategy& s = configuration.strategy;
  const std::int64_t layers = configuration.model.layers;
  const auto is_end = [&](std::int64_t rank) { return s.stages().has_first(rank) || s.stages().has_last(rank); };
  std::size_t count = 0;
  const auto least = [&](std::int64_t rank) {
    if (s.pp == 1) return layers;
    return s.virtual_stages == 1 && is_end(rank) ? 0 : s.virtual_stages;
  };
  for (const auto& by_rank : lists_of(s.pp, layers, least, [&](std::int64_t) { return layers; })) {
    const bool recomputes = s.recompute != workload::Recompute::none;
    for (const auto& recomputed : lists_of(
             s.pp, -1, [](std::int64_t) { return 0; },
             [&](std::int64_t rank) { return recomputes ? by_rank[static_cast<std::size_t>(rank)] : 0; })) {
      step::Configuration chosen = configuration;
      chosen.strategy.stage_layers = by_virtual_stage(s, by_rank);
      if (recomputes) chosen.strategy.stage_recompute_layers = by_virtual_stage(s, recomputed);
      visit(std::move(chosen));
      ++count;
    }
  }
  return count;
}

bool fits(const step::Configuration& configuration) {
  const step::MemoryRequirement memory = memory_requirement_of(configuration);
  return memory.required.total() <= memory.memory_bytes();
}

std::optional<step::BestStages> best_of(const step::Configuration& configuration) {
  const step::Links links = step::fastest_links(*configuration.graph);
  return step::best_stages(configuration, {configuration, {}}, {true, true}, links);
}

struct Counts {
  std::size_t bounds = 0, nothing_fits = 0, recomputing = 0, uneven = 0;
  double bound = 0, chosen = 0;  // sums of logarithms over the best of all
};

/// Requires the bound to be below those of all choices that fit, and the one that it comes with to be one of these.
void require_best(const step::Configuration& configuration, Counts& counts) {
  Time least = kNever;
  const std::size_t choices = visit_choices(configuration, [&](const step::Configuration& chosen) {
    if (fits(chosen)) least = std::min(least, step::lower_bound_ps(chosen));
  });
  REQUIRE(step::count_of_choices(configuration, {true, true}) == static_cast<double>(choices));
  const auto best = best_of(configuration);
  REQUIRE(best.has_value() == (least != kNever));
  if (!best) {
    ++counts.nothing_fits;
    return;
  }
  REQUIRE(best->bound_ps <= least);
  step::Configuration chosen = configuration;
  chosen.strategy.stage_layers = best->stage_layers;
  chosen.strategy.stage_recompute_layers = best->stage_recompute_layers;
  REQUIRE(fits(chosen));
  const Time of_chosen = step::lower_bound_ps(chosen);
  REQUIRE(of_chosen >= least);
  ++counts.bounds;
  counts.bound += std::log(static_cast<double>(best->bound_ps) / static_cast<double>(least));
  counts.chosen += std::log(static_cast<double>(of_chosen) / static_cast<double>(least));
  const auto& recomputed = best->stage_recompute_layers;
  counts.recomputing += std::any_of(recomputed.begin(), recomputed.end(), [](auto one) { return one > 0; }) ? 1 : 0;
  const auto [fewest, most] = std::minmax_element(best->stage_layers.begin(), best->stage_layers.end());
  counts.uneven += *most > *fewest + 1 ? 1 : 0;
}

/// Gives GPUs what a layout with equal stages needs if it recomputes everything, and a share of what it needs besides
/// if it recomputes nothing.
void limit_memory(step::Configuration& configuration, double share) {
  step::Configuration even = configuration;
  const std::int64_t stages = even.strategy.stages().count();
  even.model.layers = (even.model.layers + stages - 1) / stages * stages;
  const auto bytes_of = [&](workload::Recompute recompute) {
    even.strategy.recompute = recompute;
    return static_cast<double>(memory_requirement_of(even).required.total());
  };
  const double least = bytes_of(workload::Recompute::full), most = bytes_of(workload::Recompute::none);
  configuration.gpu.memory_gib = (least + share * (most - least)) / (1 << 30);
}

step::Configuration large_activations(step::Configuration configuration) {
  configuration.model.sequence = 1024;
  return configuration;
}

/// The later half of the machines is slower, and has less memory.
step::Configuration on_two_kinds(step::Configuration configuration) {
  const std::uint32_t gpus = configuration.graph->gpus;
  compute::Gpu slow = configuration.gpu;
  slow.speed_factor = 0.5, slow.memory_gib *= 0.9;
  configuration.other_gpus = {slow};
  configuration.kind_of_gpu.assign(gpus, 0);
  std::fill(configuration.kind_of_gpu.begin() + gpus / 2, configuration.kind_of_gpu.end(), 1);
  return configuration;
}

}  // namespace

TEST_CASE("no layers and recomputation of stages have a better bound than the best, which is close to theirs") {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    step::Configuration configuration = large_activations(draw_configuration(seed));
    workload::Strategy& s = configuration.strategy;
    if (s.pp == 1) continue;
    s.recompute = seed % 3 == 0 ? workload::Recompute::selective : workload::Recompute::full;
    if (seed % 5 == 0) s.recompute = workload::Recompute::none;
    configuration.model.layers = s.stages().count() * (s.stages().count() > 2 ? 1 : 3) + 1;
    limit_memory(configuration, seed % 2 == 0 ? 2 : 0.3 * static_cast<double>(seed % 8) - 0.5);
    if (seed % 4 == 1) configuration = on_two_kinds(configuration);
    INFO("seed " << seed << ", " << s.pp << " stages, " << configuration.model.layers << " layers");
    require_best(configuration, counts);
  }
  const auto bounds = static_cast<double>(counts.bounds);
  CAPTURE(counts.bounds, counts.nothing_fits, counts.recomputing, counts.uneven, counts.bound / bounds,
          counts.chosen / bounds);
  CHECK(counts.bounds >= 20);
  CHECK(counts.nothing_fits >= 2);
  CHECK(counts.recomputing >= 5);
  CHECK(counts.uneven >= 5);
  CHECK(counts.bound / bounds > -0.15);
  CHECK(counts.chosen / bounds < 0.02);
}

TEST_CASE("the best stages hold for every schedule that does not fix them, and for layers of two kinds") {
  std::size_t fixed = 0;
  Counts counts;
  for (const workload::ScheduleType& type : workload::schedules()) {
    if (type.chunks == workload::ScheduleType::kAsWritten) continue;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      INFO(type.name << ", seed " << seed);
      step::Configuration configuration = large_activations(with_schedule(draw_configuration(seed), type));
      workload::Strategy& s = configuration.strategy;
      configuration.model.layers = s.stages().count() + 2;
      s.recompute = workload::Recompute::full;
      if (seed % 2 == 0 && s.tp == 1) {
        configuration.model.experts = 4, configuration.model.experts_per_token = 2,
        configuration.model.dense_layers = 1;
      }
      if (!step::why_stages_are_fixed(configuration.model, s).empty()) {
        ++fixed;
        continue;
      }
      configuration.gpu.memory_gib = 80;
      require_best(configuration, counts);
    }
  }
  CAPTURE(counts.bounds, fixed);
  CHECK(counts.bounds >= 20);
  CHECK(fixed >= 4);
}

TEST_CASE("equal layers on equal GPUs are dealt out equally, and twice as many to those that are twice as fast") {
  Cluster cluster;
  cluster.nodes = 4, cluster.gpus_per_node = 1;
  step::Configuration configuration = config_of(cluster, 1, 4, 64);
  configuration.model.layers = 24;
  configuration.model.vocabulary = 8;  // head and embedding take nothing
  configuration.model.hidden = 1024;
  configuration.strategy.stack.host_kernel_us = 0;
  CHECK(best_of(configuration)->stage_layers == std::vector<std::int64_t>{6, 6, 6, 6});
  const step::Configuration mixed = on_two_kinds(configuration);
  CHECK(best_of(mixed)->stage_layers == std::vector<std::int64_t>{8, 8, 4, 4});
}
