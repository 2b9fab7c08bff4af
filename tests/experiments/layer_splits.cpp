// Splits by parameters, time and memory, from settings to steps.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/memory/footprint.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/config/stage_split.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::StartsWith;

namespace {

using Layers = std::vector<std::int64_t>;

const std::string kMachines =
    "  cluster: {gpu: h100_sxm, nodes: 4, gpus_per_node: 8, nic_gbps: 400}\n"
    "  topology: {rail_optimized: {oversubscription: 1}}\n"
    "  transport: dcqcn\n"
    "  fidelity: analytic\n";

/// Mamba layers, experts and attention, whose shares differ from stage to stage.
const std::string kHybrid =
    "base:\n  model: {like: nemotron3-nano-30b-a3b, sequence: 4096}\n" + kMachines +
    "  strategy: {tp: 2, pp: 4, ep: 8, sequence_parallel: true, micro_batch: 1, global_batch: 64}\n";

/// Three dense layers before those of experts, of which twice as many as in DeepSeek-V3 make each layer longer.
const std::string kDenseFirst =
    "base:\n  model: {like: deepseek-v3, layers: 16, sequence: 4096, experts: 32, experts_per_token: 16, dense_layers: "
    "3}\n" +
    kMachines + "  strategy: {tp: 1, pp: 4, ep: 8, micro_batch: 1, global_batch: 128}\n";

Layers layers_of(const Experiment& experiment) {
  return experiment.config().configuration.strategy.stage_layers;
}

core::Time step_of(const std::string& text, const std::vector<std::string>& sets) {
  const Sweep sweep = read(text, sets);
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  GraphCache graphs;
  return context.run(context.compile(configure(sweep.experiments.at(0), graphs)), results).step_ps;
}

const std::vector<std::string> kWeighed{"by_parameters", "by_time", "by_memory"};

}  // namespace

TEST_CASE("by_time is faster than even where layers are unlike") {
  for (const std::string& text : {kHybrid, kDenseFirst}) {
    const Layers layers = layers_of(read(text, {"strategy.split=by_time"}).experiments.at(0));
    CAPTURE(text, layers);
    const core::Time even = step_of(text, {"strategy.split=even"}), by_time = step_of(text, {"strategy.split=by_time"});
    CHECK(by_time < even);
    // Listed, the same layers take the same time.
    CHECK(step_of(text, {"strategy.stage_layers=" + fmt::format("[{}]", fmt::join(layers, ", "))}) == by_time);
  }
}

TEST_CASE("by_memory needs no more than any other split") {
  for (const std::string& text : {kHybrid, kDenseFirst}) {
    const auto peak_of = [&](const std::string& split) {
      const auto config = read(text, {"strategy.split=" + split}).experiments.at(0).config().configuration;
      return core::memory::peak(config.model, config.strategy, config.gpu).total();
    };
    for (const char* other : {"even", "by_time", "by_parameters"}) CHECK(peak_of("by_memory") <= peak_of(other));
  }
}

TEST_CASE("a step of every weighed split takes as long composed as with all packets in one event loop") {
  const std::string machines =
      "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
      "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n"
      "  strategy: {tp: 1, pp: 4, micro_batch: 1, global_batch: 8}\n";
  const std::string hybrid =
      "base:\n  model: {layers: 9, hidden: 64, heads: 8, ffn_hidden: 512, vocabulary: 2048, sequence: 256, "
      "architecture: {blocks: {m: {mamba2: {heads: 8, groups: 2}}, a: attention, f: mlp}, layers: mfmamfmaf}}\n" +
      machines;
  const std::string dense_first =
      "base:\n  model: {layers: 9, hidden: 64, heads: 8, vocabulary: 2048, sequence: 256, experts: 4, dense_layers: "
      "2}\n" +
      machines;
  for (const std::string& text : {hybrid, dense_first})
    for (const std::string& split : kWeighed) {
      CAPTURE(text, split);
      const core::Time composed = step_of(text, {"strategy.split=" + split});
      CHECK(composed > 0);
      CHECK(composed == step_of(text, {"strategy.split=" + split, "composition=coupled"}));
    }
}

TEST_CASE("weighed splits are choices of an axis as others are, and answers have their layers") {
  const Sweep sweep = read(kDenseFirst + "axes: {strategy.split: [even, by_parameters, by_time, by_memory]}\n");
  REQUIRE(sweep.experiments.size() == 4);
  CHECK(layers_of(sweep.experiments[0]).empty());
  CHECK(split_text(sweep.experiments[0].config(), sweep.experiments[0].settings).empty());
  for (std::size_t i = 1; i < 4; ++i) {
    const Experiment& experiment = sweep.experiments[i];
    const Layers layers = layers_of(experiment);
    CHECK(std::accumulate(layers.begin(), layers.end(), std::int64_t{0}) == 16);
    CHECK(split_text(experiment.config(), experiment.settings) ==
          fmt::format("{}: layers {}", kWeighed[i - 1], fmt::join(layers, ", ")));
  }
}

TEST_CASE("what a weighed split needs, or sizes that do not fit, is said by its rule") {
  const auto split = [](const std::string& name, std::vector<std::string> sets) {
    sets.push_back("strategy.split=" + name);
    return error_of(kSingle, sets);
  };
  for (const std::string& name : kWeighed) {
    CHECK_THAT(split(name, {"model.layers=5", "strategy.pp=8"}), Contains("stages_by_weight") && Contains("layers 5"));
    CHECK_THAT(split(name, {"strategy.stage_layers=[2, 2]"}), Contains("listed_layers"));
    CHECK_THAT(split(name, {"strategy.empty_layers=2"}), Contains("empty_layers_fit"));
    CHECK_THAT(split(name, {"strategy.tp=4", "model.heads=6", "model.hidden=96"}), Contains("heads_by_tp"));
    CHECK_THAT(split(name, {"cluster.nodes=3", "strategy.tp=4", "strategy.pp=4"}), Contains("gpus_by_tp_pp"));
    CHECK_THAT(split(name, {"strategy.global_batch=7"}), Contains("batch_by_replicas"));
    CHECK_THAT(split(name, {"strategy.recompute=full", "strategy.stage_recompute_layers=[1]"}),
               Contains("listed_recompute"));
    CHECK_THAT(split(name, {"model.sequence=33", "strategy.cp=2"}), Contains("sequence"));
  }
  CHECK_THAT(split("by_memory", {"strategy.schedule=zb_1p"}),
             Contains("stages_by_weight") && Contains("schedule zb_1p"));
  CHECK_THAT(split("by_memory", {"strategy.schedule=interleaved", "strategy.virtual_stages=2"}),
             Contains("stages_by_weight") && Contains("virtual_stages 2"));
}
