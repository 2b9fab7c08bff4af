// What settings mean that nobody gives: today's practice, and that of 2021.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/step/layout/memory_requirement.hpp"
#include "experiments/config/experiment_config.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::EndsWith;

namespace {

/// Llama 3 8B on 16 H100, and nothing else.
const std::string kBare =
    "base:\n"
    "  model: llama3-8b\n"
    "  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 8, nic_gbps: 400}\n";

Experiment today(const std::vector<std::string>& sets = {}, const std::string& text = kBare) {
  const Sweep sweep = parse_sweep(text, "s.yaml", sets, Catalog());
  REQUIRE(sweep.experiments.size() == 1);
  return sweep.experiments.front();
}

std::string refusal(const std::vector<std::string>& sets, const std::string& text = kBare) {
  try {
    parse_sweep(text, "s.yaml", sets, Catalog());
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

bool flag(const Experiment& experiment, const std::string& key) {
  return std::get<bool>(experiment.settings.at(key));
}

}  // namespace

TEST_CASE("a bare question is about Megatron-Core with its recipe, and a library that uses every NIC") {
  const Experiment result = today({"strategy.tp=2"});
  CHECK(text(result, "strategy.stack.name") == "megatron-core");
  CHECK(text(result, "strategy.stack.attention") == "cudnn");
  CHECK(text(result, "strategy.stack.layers") == "transformer_engine");
  CHECK(integer(result, "strategy.zero") == 1);
  for (const char* key : {"strategy.sequence_parallel", "strategy.stack.overlap_parameters",
                          "strategy.stack.overlap_tensor", "strategy.stack.overlap_input_gradient"})
    CHECK(flag(result, key));
  CHECK(integer(result, "strategy.bucket_parameters") == 40'000'000);
  CHECK(integer(today({"strategy.stack=nanotron"}), "strategy.bucket_parameters") == 13'107'200);
  CHECK(integer(result, "strategy.global_batch") == 16);
  CHECK(text(result, "collectives.all_reduce") == "auto");
  CHECK(text(result, "collectives.protocol") == "calibrated");
  CHECK(integer(result, "collectives.channels") == 0);
}

TEST_CASE("what a layout has no use for is off, and no rule is broken that nobody asked for") {
  const Experiment alone = today({"strategy.tp=8", "strategy.pp=2"});
  CHECK(integer(alone, "strategy.zero") == 0);  // no replicas
  CHECK_FALSE(flag(alone, "strategy.stack.overlap_parameters"));
  CHECK_FALSE(flag(today(), "strategy.sequence_parallel"));  // tp 1
  // A layout of each kind under every stack of the catalog, with experts and without.
  const Catalog catalog;
  for (const char* model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3"})
    for (const auto& [stack, entry] : catalog.entries("stacks"))
      for (const std::vector<std::string>& layout : {std::vector<std::string>{},
                                                     {"strategy.tp=8"},
                                                     {"strategy.tp=2", "strategy.pp=2", "model.layers=32"},
                                                     {"strategy.tp=8", "strategy.pp=2", "model.layers=32"},
                                                     {"strategy.ep=4"},
                                                     {"strategy.micro_batch=4"}}) {
        std::vector<std::string> sets = layout;
        sets.push_back("strategy.stack=" + stack);
        sets.push_back("cluster.gpu=b200_hgx");
        if (model == std::string("llama3-8b") && layout == std::vector<std::string>{"strategy.ep=4"}) continue;
        if (model == std::string("deepseek-v3") && !layout.empty() && layout.size() > 1)
          sets.push_back("model.dense_layers=0");
        CAPTURE(model, stack, layout);
        CHECK(refusal(sets, with(kBare, "llama3-8b", model)) == "(no error)");
      }
}

TEST_CASE("what is given stays, and what does not go with it is refused only where it was given too") {
  const Experiment result = today({"strategy.zero=0"});
  CHECK(integer(result, "strategy.zero") == 0);
  CHECK_FALSE(flag(result, "strategy.stack.overlap_parameters"));
  CHECK_THAT(refusal({"strategy.zero=0", "strategy.stack.overlap_parameters=true"}),
             Contains("overlap_parameters_needs_shards"));
  CHECK_FALSE(flag(today({"strategy.stack={like: megatron-core, overlap_tensor: false}", "strategy.tp=2"}),
                   "strategy.stack.overlap_tensor"));
  CHECK(text(today({"collectives.all_reduce=ring"}), "collectives.all_reduce") == "ring");
  CHECK(text(today({"collectives.protocol=none"}), "collectives.protocol") == "none");
  CHECK(text(today({"collectives.protocol=auto"}), "collectives.protocol") == "calibrated");
}

TEST_CASE("channels that a calibrated library does not heed are told") {
  const auto assumed = [](const std::vector<std::string>& sets) {
    return parse_sweep(kBare, "s.yaml", sets, Catalog()).assumed;
  };
  CHECK_THAT(assumed({"collectives.channels=1"}), Contains("collectives.channels=1 is not heeded"));
  CHECK_THAT(assumed({"collectives.channels=1", "collectives.protocol=none"}), !Contains("heeded"));
  CHECK_THAT(assumed({}), !Contains("heeded"));
}

TEST_CASE("the sequence of a model of one's own is said to be assumed, and that of a model in the catalog is not") {
  const std::string own =
      with(kBare, "model: llama3-8b", "model: {layers: 4, hidden: 1024, heads: 8, vocabulary: 32000}");
  const auto assumed = [](const std::string& text, const std::vector<std::string>& sets) {
    return parse_sweep(text, "s.yaml", sets, Catalog()).assumed;
  };
  CHECK_THAT(assumed(own, {}), Contains("model.sequence=2048"));
  CHECK(integer(today({}, own), "model.sequence") == 2048);
  CHECK_THAT(assumed(own, {"model.sequence=4096"}), !Contains("model.sequence"));
  CHECK_THAT(assumed(kBare, {}), !Contains("model.sequence"));
}

TEST_CASE("refusals tell what would be right, and what else is wrong with it") {
  // Llama 3 8B has 32 layers and 8 heads of keys and values.
  CHECK_THAT(refusal({"strategy.pp=4", "strategy.split=light_ends"}), Contains("stages 4; set strategy.split: even"));
  CHECK_THAT(refusal({"strategy.pp=4", "model.layers=31", "strategy.split=light_ends"}),
             Contains("set strategy.empty_layers: 1 and strategy.split: even"));
  CHECK_THAT(refusal({"strategy.pp=4", "model.layers=31"}),
             Contains("set strategy.empty_layers: 1") && !Contains("split: even"));
  // Four empty places on stages of two layers would leave the last two of eight stages empty.
  CHECK_THAT(refusal({"strategy.pp=8", "model.layers=12"}),
             Contains("layers 12, stages 8; set fewer stages, or each stage's layers in strategy.stage_layers"));
  CHECK_THAT(refusal({"strategy.pp=8", "model.layers=12", "strategy.empty_layers=4"}),
             Contains("'strategy.empty_layers' violates rule empty_layers_fit"));
  CHECK_THAT(refusal({"strategy.tp=16", "strategy.stack.projection_fusion=false"}),
             Contains("kv_heads 8, tp 16, projection_fusion false; such a tensor-parallel group would leave its node, "
                      "too: gpus_per_node 8"));
  CHECK_THAT(refusal({"model=llama3-9b"}), Contains("did you mean 'llama3-8b'? Or give the path of its config.json"));
}

TEST_CASE("tensor parallelism over nodes is valid and said to be unusual, and nothing hides its collectives unasked") {
  const auto assumed = [](const std::vector<std::string>& sets) {
    return parse_sweep(kBare, "s.yaml", sets, Catalog()).assumed;
  };
  const std::vector<std::string> over{"strategy.tp=16", "model.kv_heads=32"};
  const Experiment result = today(over);
  CHECK(flag(result, "strategy.sequence_parallel"));
  CHECK_FALSE(flag(result, "strategy.stack.overlap_tensor"));
  CHECK_THAT(assumed(over), Contains("unusual: a tensor-parallel group takes 2 nodes") && !Contains("no software"));
  CHECK_THAT(assumed({"strategy.tp=8"}), !Contains("unusual"));
  const std::vector<std::string> hidden{"strategy.tp=16", "model.kv_heads=32",
                                        "strategy.stack={like: megatron-core, overlap_tensor: true}"};
  CHECK(flag(today(hidden), "strategy.stack.overlap_tensor"));
  CHECK_THAT(assumed(hidden), Contains("no software known overlaps them with GEMMs there"));
}

TEST_CASE("nanotron deals layers and head out by their costs in a pipeline") {
  CHECK(text(today({"strategy.stack=nanotron", "strategy.pp=4"}), "strategy.split") == "by_cost");
  CHECK(text(today({"strategy.stack=nanotron"}), "strategy.split") == "even");
  CHECK(text(today({"strategy.stack=nanotron", "strategy.pp=4", "strategy.split=even"}), "strategy.split") == "even");
  CHECK(text(today({"strategy.pp=4"}), "strategy.split") == "even");
  for (const char* given : {"strategy.stage_layers=[7, 9, 9, 7]", "strategy.empty_layers=4"})
    CHECK(text(today({"strategy.stack=nanotron", "strategy.pp=4", given}), "strategy.split") == "even");
}

TEST_CASE("a batch that is assumed stays within its range, and is refused where that leaves replicas unequal") {
  CHECK_THAT(refusal({"cluster.nodes=16384", "strategy.micro_batch=65535"}), Contains("batch_by_replicas"));
}

TEST_CASE("a stack that is named brings its own recipe, and what its file does not say is as in 2021") {
  CHECK(integer(today({"strategy.stack=torch-fsdp"}), "strategy.zero") == 3);
  const Experiment old = today({"strategy.stack=megatron-2021", "strategy.tp=2"});
  CHECK(integer(old, "strategy.zero") == 0);
  CHECK_FALSE(flag(old, "strategy.sequence_parallel"));
  CHECK(text(old, "strategy.stack.attention") == "unfused");
  CHECK(text(old, "strategy.stack.layers") == "framework");
}

TEST_CASE("a model of one's own has the parts of a Llama, and one of the catalog its own") {
  const std::string own =
      with(kBare, "llama3-8b", "{layers: 4, hidden: 4096, heads: 32, vocabulary: 512, sequence: 32}");
  const Experiment result = today({}, own);
  CHECK(text(result, "model.norm") == "rms_norm");
  CHECK(text(result, "model.activation") == "swiglu");
  CHECK(text(result, "model.position") == "rotary");
  for (const char* key : {"model.tied_embeddings", "model.biases", "model.dropout"}) CHECK_FALSE(flag(result, key));
  CHECK(integer(result, "model.ffn_hidden") == 11'008);  // Llama 2 7B's, Touvron et al. 2023
  CHECK(integer(today({"model.ffn_hidden=14336"}, own), "model.ffn_hidden") == 14'336);
  CHECK(integer(today({"model.activation=gelu"}, own), "model.ffn_hidden") == 4 * 4'096);
  const Experiment gpt = today({}, with(kBare, "llama3-8b", "gpt3-1.3b"));
  CHECK(text(gpt, "model.activation") == "gelu");
  CHECK(flag(gpt, "model.tied_embeddings"));
}

TEST_CASE("what was assumed is said in one line, and survives serialization") {
  const Sweep sweep = parse_sweep(kBare + "axes: {strategy.tp: [1, 2], strategy.zero: [1]}\n", "s.yaml", {}, Catalog());
  CHECK(sweep.assumed ==
        "cluster.memory_headroom=0.04, collectives.all_reduce=auto, collectives.channels=0, "
        "collectives.protocol=calibrated, "
        "strategy.global_batch=16, strategy.sequence_parallel=false or true, strategy.stack=megatron-core, "
        "topology=rail_optimized, transport.routing=destination_mod_k");
  CHECK(deserialize(serialize(sweep)).assumed == sweep.assumed);
}

TEST_CASE("the practice of 2021 is what the option tables say, in the document or above it") {
  const std::string whole = kBare + "  strategy: {global_batch: 16}\n";
  const Settings old = read(whole + "assume: 2021\n").experiments.front().settings;
  CHECK(old == read(whole).experiments.front().settings);
  CHECK(old == today({"assume=2021"}, whole).settings);
  CHECK(std::get<std::string>(old.at("strategy.stack.attention")) == "unfused");
  CHECK(std::get<std::int64_t>(old.at("collectives.channels")) == 1);
  CHECK(today({"assume=today"}, whole + "assume: 2021\n").settings == today({}, whole).settings);
  CHECK_THAT(refusal({}, whole + "assume: 2020\n"), Contains("s.yaml:5: ") && Contains("today") && Contains("2021"));
  CHECK_THAT(refusal({"assume=2020"}, whole), Contains("--set assume=2020") && Contains("today"));
  CHECK_THAT(refusal({"assume=2021", "assume=today"}, whole), Contains("twice"));
}

TEST_CASE("switches have 64 ports, and what the fabric oversubscribes goes down instead of up") {
  const auto rails = [](const std::vector<std::string>& more, int nodes = 64) {
    std::vector<std::string> sets{fmt::format("cluster.nodes={}", nodes), "topology=rail_optimized", "tp=8",
                                  "global_batch=512"};
    sets.insert(sets.end(), more.begin(), more.end());
    return integer(today(sets), "topology.nodes_per_pod");
  };
  CHECK(rails({}) == 32);
  CHECK(rails({"topology.oversubscription=2"}) == 42);  // 21 up
  CHECK(rails({"topology.oversubscription=3"}) == 48);  // 16
  CHECK(rails({"topology.oversubscription=4"}) == 48);  // 12
  CHECK(rails({"topology.oversubscription=8"}) == 56);  // 7
  CHECK(rails({}, 32) == 0);                            // all on one switch
  CHECK(rails({"topology.nodes_per_pod=0"}) == 0);
  CHECK(rails({"assume=2021"}) == 0);
  const auto leaves = [](const std::vector<std::string>& more) {
    std::vector<std::string> sets{"topology=fat_tree", "global_batch=16"};
    sets.insert(sets.end(), more.begin(), more.end());
    return integer(today(sets), "topology.leaf_hosts");
  };
  CHECK(leaves({}) == 32);
  CHECK(leaves({"topology.oversubscription=2"}) == 40);  // whole nodes of 8
  CHECK(leaves({"topology.oversubscription=3"}) == 48);
  CHECK(leaves({"topology.oversubscription=4"}) == 48);
  CHECK(leaves({"topology.leaf_hosts=16"}) == 16);
  CHECK(leaves({"assume=2021"}) == 32);
  CHECK(integer(today({"topology=dragonfly_plus"}), "topology.leaf_hosts") == 0);
}

TEST_CASE("transport and routing are those of the network that the cluster has") {
  CHECK(text(today(), "transport") == "static_window");
  CHECK(text(today(), "transport.routing") == "destination_mod_k");
  const Experiment roce = today({"cluster.network=roce"});
  CHECK(text(roce, "transport") == "dcqcn");
  CHECK(text(roce, "transport.routing") == "ecmp_hash");
  CHECK(roce.settings.count("transport.open") == 0);
  CHECK_NOTHROW(roce.config());
  CHECK(today().settings.count("transport.open") == 0);
  // What is named stays, and takes the rest of its options with it.
  const Experiment named = today({"cluster.network=roce", "transport=hpcc"});
  CHECK(text(named, "transport") == "hpcc");
  CHECK(text(named, "transport.routing") == "ecmp_hash");
  CHECK(text(today({"cluster.network=roce", "transport=static_window"}), "transport") == "static_window");
  CHECK(text(today({"cluster.network=roce", "transport.routing=destination_mod_k"}), "transport.routing") ==
        "destination_mod_k");
  CHECK(text(today({"assume=2021", "cluster.network=roce", "global_batch=16"}), "transport") == "static_window");
  CHECK(text(today({"cluster=mi300x_nodes"}), "transport") == "dcqcn");
}

TEST_CASE("memory keeps headroom, which a layout has to fit beside") {
  const auto usable = [](const std::vector<std::string>& sets) {
    return core::step::memory_requirement_of(today(sets).config().configuration).memory_gib;
  };
  CHECK(usable({}) == Approx(79.11 * 0.96));
  CHECK(usable({"cluster.memory_headroom=0"}) == Approx(79.11));
  CHECK(usable({"assume=2021", "global_batch=16"}) == Approx(79.11));
}

TEST_CASE("keys at the top of base may be typed with dots or by their last words, and go before their sections") {
  const Experiment result = today({},
                                  "base:\n  tp: 4\n  strategy.pp: 2\n  collectives.channels: 2\n  model: llama3-8b\n"
                                  "  cluster: {gpu: h100_sxm, nodes: 2, gpus_per_node: 8, nic_gbps: 400}\n"
                                  "  strategy: {tp: 2, micro_batch: 2}\n");
  CHECK(integer(result, "strategy.tp") == 4);
  CHECK(integer(result, "strategy.pp") == 2);
  CHECK(integer(result, "strategy.micro_batch") == 2);
  CHECK(integer(result, "collectives.channels") == 2);
  CHECK_THAT(refusal({}, kBare + "  tpp: 4\n"), Contains("s.yaml:4: unknown key 'tpp'"));
  CHECK(integer(today({"topology.fat_tree={oversubscription: 4, leaf_hosts: 16}"}), "topology.leaf_hosts") == 16);
  CHECK_THAT(refusal({"base.tp=2"}), Contains("keys are given as they stand below base: 'tp'"));
  CHECK_THAT(refusal({"stack="}), Contains("no value"));
  CHECK_THAT(refusal({"model.like=llama3-70b"}), Contains("it is model=llama3-70b, or "));
  CHECK_THAT(refusal({}, "base:\n\tmodel: x\n"), Contains("s.yaml:2") && Contains("tab"));
  CHECK_THAT(refusal({"tp=3"}), Contains("violates rule tp_by_node"));
  CHECK(integer(today({"strategy.tensor_parallel=2"}), "strategy.tp") == 2);
  CHECK(integer(today({"tensor_model_parallel_size=2"}), "strategy.tp") == 2);
  CHECK(integer(today({"model.hidden_size=4096"}), "model.hidden") == 4096);
  CHECK_THAT(refusal({"model.tensor_parallel=2"}), Contains("here it is strategy.tp"));
  for (const auto& [word, key] : {std::pair("tensor", "tp"),
                                  {"pipeline", "pp"},
                                  {"context", "cp"},
                                  {"expert", "ep"},
                                  {"tensor_parallel_size", "tp"},
                                  {"expert_parallel", "ep"}}) {
    INFO(word);
    const std::string set = fmt::format("{}=2", word), hint = fmt::format("; here it is strategy.{}", key);
    CHECK_THAT(refusal({"strategy." + set}), EndsWith(hint));
    CHECK_THAT(refusal({set}), EndsWith(hint));
    CHECK_THAT(refusal({"model." + set}), !Contains(hint));
  }
  CHECK_THAT(refusal({"strategy.data=2"}), Contains("what the GPUs leave beside tp x cp x pp"));
  CHECK_THAT(refusal({"model.max_position_embeddings=2"}), Contains("model.sequence"));
  CHECK_THAT(refusal({"globl_batch=2"}), Contains("did you mean 'global_batch'?"));
  CHECK_THAT(refusal({"xyzzy=2"}), Contains("known are model, cluster"));
  CHECK_THAT(refusal({"objective=mfu"}), Contains("beside base in the document"));
  CHECK_THAT(refusal({"cluster=a800_pcie"}), Contains("; or give one of your own"));
  CHECK_THAT(refusal({"cluster.scale_up=pcie"}), Contains("did you mean 'cluster.gpu.scale_up'?"));
  CHECK_THAT(refusal({}, kBare + "  tp: 4\n  tensor_model_parallel_size: 4\n"),
             Contains("s.yaml:5: 'tp' and 'tensor_model_parallel_size' are one key"));
  CHECK_THAT(refusal({}, "base:\n  model: {hidden: 8, hidden_size: 8}\n"),
             Contains("'hidden' and 'hidden_size' are one key"));
  CHECK_THAT(refusal({"fsdp=1"}), Contains("here it is strategy.zero=3"));
  CHECK_THAT(refusal({"strategy.dp=2"}), Contains("which no key sets"));
  CHECK(text(today({"cluster.gpu=H100"}), "cluster.gpu.name") == "h100_sxm");
  CHECK_THAT(refusal({"tp=3"}), Contains("it violates heads_by_tp, "));
}

TEST_CASE("the network by itself needs no model, and no figures of the GPU but its links") {
  const std::string links =
      "base:\n  cluster: {gpu: {scale_up_gb_per_s: 450, scale_up_latency_us: 0.5}, nodes: 2, gpus_per_node: 8, "
      "nic_gbps: 400}\n  collectives: {protocol: none}\n";
  const Sweep sweep = parse_sweep(links, "s.yaml", {}, Catalog(), {.scope = Scope::network});
  CHECK(sweep.experiments.size() == 1);
  CHECK_THAT(refusal({}, links), Contains("'model' is missing; name one of the catalog"));
}

TEST_CASE("machines of which nobody says how they are joined hang on rails of switches as they are sold") {
  CHECK(text(today(), "topology") == "rail_optimized");
  CHECK(text(today({"assume=2021", "strategy.global_batch=16"}), "topology") == "one_switch");
  CHECK(text(today({"topology=one_switch"}), "topology") == "one_switch");
  const Experiment oversubscribed = today({"topology.oversubscription=3", "cluster.nodes=96"});
  CHECK(integer(oversubscribed, "topology.nodes_per_pod") == 48);  // 48 ports down and 16 up
  const auto assumed = [](const std::string& set) { return parse_sweep(kBare, "s.yaml", {set}, Catalog()).assumed; };
  CHECK_THAT(assumed("cluster.nodes=2"), Contains("topology=rail_optimized"));
  CHECK_THAT(assumed("topology=rail_optimized"), !Contains("topology"));
  CHECK_THAT(assumed("cluster.nodes=1"), !Contains("topology"));
  const std::string idle = "all nodes hang on one switch: topology.oversubscription changes nothing";
  CHECK_THAT(assumed("topology.oversubscription=2"), Contains(idle));
  CHECK_THAT(assumed("topology={fat_tree: {oversubscription: 4}}"), Contains(idle));
  CHECK_THAT(assumed("topology={fat_tree: {oversubscription: 4, leaf_hosts: 8}}"), !Contains(idle));
  const std::vector<std::string> pods{"cluster.nodes=4",
                                      "topology={rail_optimized: {oversubscription: 2, nodes_per_pod: 2}}"};
  CHECK_THAT(parse_sweep(kBare, "s.yaml", pods, Catalog()).assumed, !Contains(idle));
}
