// Splits by parameters, time and memory beside all splits, which are weighed as steps are built: by the work of stages,
// and by the footprints of their ranks.
#include "core/step/layout/layer_split.hpp"

#include <functional>
#include <set>
#include <tuple>

#include "core/memory/footprint.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "tests/core/step/step_configurations.hpp"
#include "tests/core/workload/architecture_models.hpp"

using namespace manyworlds::tests;
using workload::LayerSplit;

namespace {

using Layers = std::vector<std::int64_t>;

/// Visits all splits in lexicographic order: at least a layer for each stage but the first and the last.
void visit_splits(const step::Configuration& configuration, const std::function<void(const Layers&)>& visit) {
  const std::int64_t stages = configuration.strategy.stages().count();
  Layers split;
  const std::function<void(std::int64_t)> extend = [&](std::int64_t left) {
    const std::int64_t stage = std::ssize(split);
    if (stage == stages) {
      if (left == 0) visit(split);
      return;
    }
    const bool is_end = stages > 1 && (stage == 0 || stage == stages - 1);
    for (std::int64_t layers = is_end ? 0 : 1; layers <= left; ++layers) {
      split.push_back(layers);
      extend(left - layers);
      split.pop_back();
    }
  };
  extend(configuration.model.layers);
}

Time kernels_of(const workload::PhaseList& pass) {
  Time sum = 0;
  for (const workload::Phase& phase : pass)
    for (const workload::WorkItem& work : phase.ops)
      if (const workload::KernelWork* kernel = work.kernel()) sum += kernel->cost.ps;
  return sum;
}

/// Returns the longest forward and backward pass of each virtual stage.
std::vector<Time> stage_times(const step::Configuration& configuration) {
  const workload::StageMap stages = configuration.strategy.stages();
  std::vector<Time> longest(static_cast<std::size_t>(stages.count()));
  for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration))) {
    const workload::StageWork work =
        stage_work(configuration.model, configuration.strategy, configuration.gpu_of(rank_class), rank_class);
    for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
      Time sum = 0;
      for (const workload::ModelPart part : work.chunks[chunk])
        sum += kernels_of(work.of(part).forward) + kernels_of(work.of(part).backward);
      Time& most = longest.at(static_cast<std::size_t>(stages.of(rank_class.stage, static_cast<std::int64_t>(chunk))));
      most = std::max(most, sum);
    }
  }
  return longest;
}

std::int64_t largest_footprint(const step::Configuration& configuration) {
  std::int64_t largest = 0;
  for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration)))
    largest = std::max(largest, memory::footprint(configuration.model, configuration.strategy,
                                                  configuration.gpu_of(rank_class), rank_class)
                                    .total());
  return largest;
}

/// Returns the most trained parameters of a virtual stage, with a table for the head.
std::int64_t most_parameters(const step::Configuration& configuration) {
  const workload::Model& model = configuration.model;
  const workload::Strategy& s = configuration.strategy;
  std::int64_t most = 0, layer = 0;
  for (std::size_t stage = 0; stage < s.stage_layers.size(); ++stage) {
    const bool is_last = stage + 1 == s.stage_layers.size(), ends = !workload::is_frozen(model);
    std::int64_t sum = stage == 0 && ends ? workload::embedding_parameters(model, s.tp) : 0;
    std::vector<workload::LayerKind> kinds;
    for (std::int64_t i = 0; i < s.stage_layers[stage]; ++i) kinds.push_back(model.layer_kind(layer++));
    for (std::int64_t i = 0; is_last && i < model.mtp_layers; ++i) kinds.push_back(workload::mtp_kind(model));
    for (const workload::LayerKind kind : kinds) {
      const workload::Parameters own = trained_layer_parameters(model, s, kind);
      sum += own.dense + own.experts;
    }
    if (is_last && ends)
      sum += workload::final_norm_parameters(model) + workload::token_table_parameters(model, s.tp) +
             workload::table_copy_parameters(model, s);
    most = std::max(most, sum);
  }
  return most;
}

/// What the largest stage weighs, the longest time of a stage, and the sum of squares of these; the latter two are 0 by
/// parameters.
using Weight = std::tuple<std::int64_t, Time, Int128>;

Weight weight_of(const step::Configuration& configuration, LayerSplit split) {
  if (split == LayerSplit::by_parameters) return {most_parameters(configuration), 0, 0};
  Time longest = 0;
  Int128 squares = 0;
  for (const Time each : stage_times(configuration)) {
    longest = std::max(longest, each);
    squares += static_cast<Int128>(each) * each;
  }
  return {split == LayerSplit::by_time ? longest : largest_footprint(configuration), longest, squares};
}

/// Requires a split to be the first of all with the least weight; returns whether it is another than of equal
/// numbers of layers.
bool require_best(step::Configuration configuration, LayerSplit split) {
  configuration.strategy.split = split;
  if (!step::why_no_split(configuration).empty()) return false;
  const Layers layers = step::split_layers(configuration);
  configuration.strategy.split = LayerSplit::even;
  Layers best;
  Weight least;
  visit_splits(configuration, [&](const Layers& candidate) {
    configuration.strategy.stage_layers = candidate;
    const Weight weight = weight_of(configuration, split);
    if (best.empty() || weight < least) least = weight, best = candidate;
  });
  CAPTURE(static_cast<int>(split), layers, best);
  REQUIRE(layers == best);
  std::int64_t largest = 0, before = 0;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    largest = std::max(largest, step::stage_weight(configuration, split, stage, before, before + layers[stage]));
    before += layers[stage];
  }
  REQUIRE(largest == std::get<0>(least));
  const auto [fewest, most] = std::minmax_element(layers.begin(), layers.end());
  return *most > *fewest + 1;
}

constexpr LayerSplit kWeighed[] = {LayerSplit::by_parameters, LayerSplit::by_time, LayerSplit::by_memory};

/// Layers of three kinds in an order without a period.
workload::Model hybrid(workload::Model model) {
  using workload::branch_of;
  model.heads = 8;
  return described(model,
                   {{branch_of(model, "mamba2", {{"heads", std::int64_t{16}}, {"groups", std::int64_t{8}}})},
                    {branch_of(model, "attention")},
                    {branch_of(model, "mlp")}},
                   {0, 2, 0, 1, 2, 0, 2});
}

}  // namespace

TEST_CASE("splits by parameters, time and memory are the best of all") {
  int uneven = 0, mixed = 0, recomputing = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    step::Configuration configuration = draw_configuration(seed);
    workload::Strategy& s = configuration.strategy;
    if (s.pp == 1) continue;
    configuration.model.layers = s.stages().count() + 2;
    configuration.model.vocabulary = seed % 2 == 0 ? 2'048 : 16'384;
    configuration = with_context_and_experts(std::move(configuration), seed);
    if (s.recompute == workload::Recompute::full && seed % 2 == 0) s.recompute_layers = 1, ++recomputing;
    if (seed % 7 == 3) {  // the later half of the machines is slower
      compute::Gpu slow = configuration.gpu;
      slow.speed_factor = 0.5;
      configuration.other_gpus = {slow};
      configuration.kind_of_gpu.assign(configuration.graph->gpus, 0);
      std::fill(configuration.kind_of_gpu.begin() + configuration.graph->gpus / 2, configuration.kind_of_gpu.end(), 1);
      ++mixed;
    }
    CAPTURE(seed, s.pp, s.virtual_stages, configuration.model.layers);
    for (const LayerSplit split : kWeighed) uneven += require_best(configuration, split) ? 1 : 0;
  }
  CHECK(uneven > 10);
  CHECK(mixed > 2);
  CHECK(recomputing > 2);
}

TEST_CASE("layers for multi-token prediction weigh on the last stage, and what is not trained weighs less") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    step::Configuration configuration = draw_configuration(seed);
    workload::Model& model = configuration.model;
    workload::Strategy& s = configuration.strategy;
    if (s.pp == 1) continue;
    model.layers = s.stages().count() + 2;
    model.position = workload::Position::rotary;
    s.zero = 0;
    if (seed % 3 == 0) {
      model.mtp_layers = 1 + static_cast<std::int64_t>(seed % 2);
    } else {
      model.tied_embeddings = false;
      model.frozen = seed % 3 == 1;  // as a whole, so that layers of the first stage run forward only
      if (!model.frozen) model.lora_rank = 8, model.lora_weights = workload::lora_weight::linear_fc2;
    }
    CAPTURE(seed, s.pp, s.virtual_stages, model.layers, model.mtp_layers);
    for (const LayerSplit split : kWeighed) require_best(configuration, split);
  }
}

TEST_CASE("splits are the best of all for every schedule, and for layers of an architecture") {
  std::set<std::string> by_memory;
  for (std::uint64_t seed = 1; seed <= std::size(workload::schedules()); ++seed) {
    const workload::ScheduleType& type = workload::schedules()[seed - 1];
    if (type.chunks == workload::ScheduleType::kAsWritten) continue;
    step::Configuration configuration = with_schedule(draw_configuration(seed), type);
    configuration.strategy.zero = 0;
    configuration.model = hybrid(configuration.model);
    configuration.strategy.tp = 1;
    configuration.strategy.sequence_parallel = configuration.strategy.stack.overlap_tensor = false;
    configuration.strategy.dp = configuration.graph->gpus / configuration.strategy.pp;
    configuration.strategy.global_batch = 2 * configuration.strategy.pp * configuration.strategy.dp;
    if (configuration.strategy.stages().count() > configuration.model.layers) continue;
    CAPTURE(type.name);
    for (const LayerSplit split : kWeighed) require_best(configuration, split);
    configuration.strategy.split = LayerSplit::by_memory;
    if (step::why_no_split(configuration).empty()) by_memory.insert(type.name);
  }
  CHECK(by_memory.contains("1f1b"));
  CHECK_FALSE(by_memory.contains("interleaved"));
  CHECK_FALSE(by_memory.contains("zb_1p"));
}

TEST_CASE("the first stages of 1F1B hold more micro-batches, and so have fewer layers by memory") {
  step::Configuration configuration = config_of({}, 1, 4, 8);
  configuration.model.layers = 24;
  configuration.model.sequence = 1'024;  // activations outweigh states
  configuration.model.vocabulary = 128;
  configuration.strategy.split = LayerSplit::by_memory;
  const Layers layers = step::split_layers(configuration);
  CAPTURE(layers);
  CHECK(std::is_sorted(layers.begin(), layers.end()));
  CHECK(layers.front() < layers.back());
}

TEST_CASE("of splits that are as good, layers are dealt out evenly") {
  step::Configuration configuration = config_of({}, 1, 8, 8);
  configuration.model.layers = 10;  // a stage has two of them at least
  configuration.model.vocabulary = 128;
  configuration.strategy.split = LayerSplit::by_time;
  Layers layers = step::split_layers(configuration);
  CAPTURE(layers);
  std::sort(layers.begin(), layers.end());
  CHECK(layers == Layers{1, 1, 1, 1, 1, 1, 2, 2});
}

TEST_CASE("a forward pass alone is split by all parameters, as the step that trains them") {
  step::Configuration configuration = config_of({}, 1, 4, 8);
  configuration.model.layers = 14;
  configuration.model.vocabulary = 16'384;
  configuration.strategy.split = LayerSplit::by_parameters;
  const Layers trained = step::split_layers(configuration);
  for (const workload::Inference inference : {workload::Inference::scoring, workload::Inference::generation}) {
    configuration.model.inference = inference;
    CHECK(step::split_layers(configuration) == trained);
  }
}

TEST_CASE("a configuration whose layers are not listed is not laid out") {
  step::Configuration configuration = config_of({}, 1, 4, 8);
  configuration.strategy.split = LayerSplit::by_time;
  CHECK_THROWS_WITH(parallel_config_of(configuration), Catch::Contains("layers of 4 stages are not listed"));
}
