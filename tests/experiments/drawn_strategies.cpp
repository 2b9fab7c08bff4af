// Strategies drawn over every key there is: whatever the rules let through can be simulated, and composed and coupled
// simulations of it agree. A new key is drawn from its table; one with numbers has to be told here which to draw.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "core/memory/footprint.hpp"
#include "core/step/run/simulation_context.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::OptionInfo;

namespace {

const std::string kSmall =
    "base:\n"
    "  model: {layers: 8, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}\n"
    "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
    "  topology: rail_optimized\n"
    "  strategy: {micro_batch: 1, global_batch: 16}\n";

const std::vector<std::vector<std::string>> kModels{
    {},
    {"model.activation=swiglu", "model.kv_heads=2", "model.position=rotary", "model.tied_embeddings=false"},
    {"model.experts=8", "model.experts_per_token=2", "model.expert_ffn_hidden=64", "model.dense_layers=1",
     "model.mtp_layers=1", "model.position=rotary", "model.tied_embeddings=false"},
    {"model.experts=4", "model.shared_ffn_hidden=64", "model.attention=latent", "model.kv_rank=32",
     "model.query_rank=32", "model.rotary_dim=8", "model.mtp_layers=2", "model.position=none"},
    {"model.experts=8", "model.experts_per_token=2", "routing=zipf"},
    {"model.experts=8", "strategy.sequence_parallel=true", "strategy.etp=2"},
};

/// What is drawn of keys with numbers. Those with nothing to draw stay as they are.
const std::map<std::string, std::vector<std::string>> kNumbers{
    {"strategy.tp", {"1", "2", "4"}},
    {"strategy.pp", {"1", "2", "4"}},
    {"strategy.cp", {"1", "2"}},
    {"strategy.ep", {"1", "2", "4"}},
    {"strategy.etp", {"1", "2"}},
    {"strategy.micro_batch", {"1", "2"}},
    {"strategy.global_batch", {"8", "16", "32"}},
    {"strategy.virtual_stages", {"1", "2", "4"}},
    {"strategy.stage_layers", {"none", "3+5", "1+3+3+1"}},
    {"strategy.empty_layers", {"0", "1", "2"}},
    {"strategy.recompute_layers", {"0", "1"}},
    {"strategy.recompute_stages", {"0", "1"}},
    {"strategy.stage_recompute_layers", {"none", "2+3", "0+1+2+1"}},
    {"strategy.offload_layers", {"0", "1"}},
    {"strategy.offload_stages", {"0", "1"}},
    {"strategy.zero", {"0", "1", "2", "3"}},
    {"strategy.zero_group", {"0", "2"}},
    {"strategy.bucket_parameters", {"3000", "40000000"}},
    {"strategy.capacity_factor", {"0", "1", "1.5"}},
    {"strategy.expert_recompute_tokens", {"0", "20"}},
    {"strategy.stack.tensor_chunks", {"0", "2"}},
    {"strategy.stack.loss_chunks", {"1", "4"}},
    {"strategy.stack.communication_sms", {"0", "20"}},
    {"strategy.stack.dispatcher_sms", {"12", "20"}},
    {"strategy.hot_expert_spread", {"0", "0.5"}},
    {"strategy.hot_expert_tflops", {}},
    {"strategy.hot_expert_gbps", {}},
    {"strategy.stack.fragmentation", {"0", "0.25"}},
    {"strategy.stack.host_kernel_us", {"0", "40"}},
    {"strategy.stack.host_collective_us", {"0", "200"}},
};

/// What means something only together is drawn together, too.
const std::vector<std::vector<std::string>> kTogether{
    {"strategy.capacity_factor=1.25", "strategy.pad_to_capacity=true", "strategy.expert_gemm=batched"},
    {"strategy.hot_experts=true", "strategy.ep=4"},
    {"strategy.zero=1", "strategy.stack.overlap_parameters=true"},
    {"strategy.pp=1", "strategy.ep=2", "strategy.stack.overlap_experts=true"},
    {"strategy.pp=2", "strategy.schedule=interleaved", "strategy.virtual_stages=2"},
    {"strategy.recompute_modules=layernorm+core_attn", "strategy.recompute_layers=1"},
    {"strategy.offload_modules=attn_norm+core_attn+mlp_norm", "strategy.offload_layers=1"},
    {"strategy.tp=8", "model.heads=8", "model.kv_heads=8", "strategy.pp=1", "strategy.cp=1", "strategy.zero=0"},
    {"strategy.tp=8", "model.heads=8", "model.kv_heads=8", "strategy.pp=1", "strategy.cp=1", "strategy.zero=0",
     "strategy.sequence_parallel=true", "strategy.stack.overlap_tensor=true"},
    {"strategy.gradient_exchange=factors", "strategy.factor_weights=attn_proj+mlp_fc1", "strategy.zero=0",
     "strategy.schedule=1f1b", "strategy.virtual_stages=1", "strategy.tp=2", "strategy.pp=2", "strategy.cp=1",
     "strategy.micro_batch=1", "strategy.global_batch=2", "strategy.stack.precision=bf16", "strategy.split=even",
     "strategy.data_parts=none", "model.mtp_layers=0"},
    {"strategy.gradient_exchange=cheapest", "strategy.factor_weights=none", "strategy.zero=0",
     "strategy.schedule=gpipe", "strategy.virtual_stages=1", "strategy.pp=1", "strategy.tp=2", "strategy.cp=2",
     "strategy.micro_batch=2", "strategy.global_batch=4", "strategy.stack.precision=bf16", "strategy.split=even",
     "strategy.data_parts=none", "model.mtp_layers=0"},
    {"strategy.split=by_cost", "strategy.pp=4", "model.vocabulary=4096"},
    {"strategy.data_parts=attention", "strategy.tp=2", "strategy.pp=1", "strategy.cp=1", "strategy.micro_batch=2",
     "strategy.sequence_parallel=true", "strategy.gradient_exchange=sums"},
};

struct Key {
  std::string name;
  std::vector<std::string> values;
  bool is_list = false;
};

std::vector<Key> keys() {
  std::vector<Key> all;
  const auto add = [&](const std::string& path, const std::vector<OptionInfo>& options) {
    for (const OptionInfo& info : options) {
      Key key{path + info.name, info.choices, info.is_list};
      if (info.kind == OptionInfo::Kind::boolean) key.values = {"true", "false"};
      if (const auto numbers = kNumbers.find(key.name); numbers != kNumbers.end()) {
        key.values = numbers->second;
        key.is_list = false;
      } else {
        INFO(key.name << " has numbers, and nobody says which to draw");
        REQUIRE_FALSE(key.values.empty());
      }
      if (!key.values.empty()) all.push_back(std::move(key));
    }
  };
  add("strategy.", core::workload::strategy_options().infos());
  add("strategy.stack.", core::workload::stack_options().infos());
  return all;
}

/// Sizes of the layout are drawn for every experiment; of the other keys each for one experiment in five.
std::vector<std::string> draw(const std::vector<Key>& all, std::mt19937_64& random) {
  static const std::set<std::string> often{"strategy.tp", "strategy.pp", "strategy.global_batch"};
  std::vector<std::string> sets = kModels[random() % kModels.size()];
  for (const Key& key : all) {
    if (often.count(key.name) == 0 && random() % 5 != 0) continue;
    if (!key.is_list) {
      sets.push_back(key.name + "=" + key.values[random() % key.values.size()]);
      continue;
    }
    std::vector<std::string> some;
    for (const std::string& name : key.values)
      if (random() % 3 == 0) some.push_back(name);
    sets.push_back(key.name + "=" + core::join_list(some));
  }
  if (random() % 3 == 0)
    for (const std::string& one : kTogether[random() % kTogether.size()]) sets.push_back(one);
  return sets;
}

}  // namespace

TEST_CASE("every strategy that the rules let through runs, composed as coupled, to the picosecond") {
  const std::vector<Key> all = keys();
  std::mt19937_64 random(7);
  std::map<std::string, std::size_t> configurations;  // in which a key is not at its default
  std::size_t valid = 0;
  GraphCache graphs;
  const Catalog catalog;
  const auto defaults =
      parse_sweep(kSmall, "s.yaml", {}, catalog, {.practice = Practice::of_2021}).experiments.at(0).settings;
  const auto all_seen = [&] {
    return std::all_of(all.begin(), all.end(), [&](const Key& key) { return configurations[key.name] > 0; });
  };
  for (std::size_t drawn = 0; valid < 150 || (valid < 2'000 && !all_seen()); ++drawn) {
    const std::vector<std::string> sets = drawn < kTogether.size() ? kTogether[drawn] : draw(all, random);
    Sweep sweep;
    try {
      sweep = parse_sweep(kSmall, "s.yaml", sets, catalog, {.practice = Practice::of_2021});
    } catch (const core::InputError&) {
      continue;
    }
    ++valid;
    std::string told;
    for (const std::string& one : sets) told += one + " ";
    INFO(told);
    const Experiment& experiment = sweep.experiments.at(0);
    bool shows_another = false;
    for (const Key& key : all)
      if (experiment.settings.at(key.name) != defaults.at(key.name))
        shows_another = configurations[key.name]++ == 0 || shows_another;
    if (valid > 150 && !shows_another) continue;
    core::step::Configuration configuration = configure(experiment, graphs);
    REQUIRE(core::memory::peak(configuration.model, configuration.strategy, configuration.gpu).total() > 0);
    std::vector<core::step::StepResult> results;
    for (const auto composition : {core::step::Composition::composed, core::step::Composition::coupled}) {
      configuration.composition = composition;
      core::step::SimulationContext context(true);
      core::step::IsolatedResults isolated;
      results.push_back(context.run(context.compile(configuration), isolated));
    }
    REQUIRE(results[0].step_ps == results[1].step_ps);
    REQUIRE(results[0].link_hops == results[1].link_hops);
    REQUIRE(results[0].breakdown[core::workload::StepPart::bubble] ==
            results[1].breakdown[core::workload::StepPart::bubble]);
  }
  for (const Key& key : all) {
    INFO(key.name << " was never other than by default");
    CHECK(configurations[key.name] > 0);
  }
}
