// What settings mean that nobody gives: today's practice, and that of 2021.
#include <catch2/catch.hpp>

#include "experiments/world.hpp"
#include "sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;

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
  const Experiment made = today({"strategy.tp=2"});
  CHECK(text(made, "strategy.stack.name") == "megatron-core");
  CHECK(text(made, "strategy.stack.attention") == "cudnn");
  CHECK(text(made, "strategy.stack.layers") == "transformer_engine");
  CHECK(integer(made, "strategy.zero") == 1);
  for (const char* key : {"strategy.sequence_parallel", "strategy.stack.overlap_parameters",
                          "strategy.stack.overlap_tensor", "strategy.stack.overlap_input_gradient"})
    CHECK(flag(made, key));
  CHECK(integer(made, "strategy.global_batch") == 16);
  CHECK(text(made, "collectives.all_reduce") == "auto");
  CHECK(text(made, "collectives.protocol") == "calibrated");
  CHECK(integer(made, "collectives.channels") == 0);
}

TEST_CASE("what a layout has no use for is off, and no rule is broken that nobody asked for") {
  const Experiment alone = today({"strategy.tp=8", "strategy.pp=2"});
  CHECK(integer(alone, "strategy.zero") == 0);  // no replicas
  CHECK_FALSE(flag(alone, "strategy.stack.overlap_parameters"));
  CHECK_FALSE(flag(today(), "strategy.sequence_parallel"));  // tp 1
  // A layout of each kind under every stack of the catalog, with experts and without.
  const Catalog catalog;
  for (const char* model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3"})
    for (const auto& [stack, entry] : catalog.of("stacks"))
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
  const Experiment made = today({"strategy.zero=0"});
  CHECK(integer(made, "strategy.zero") == 0);
  CHECK_FALSE(flag(made, "strategy.stack.overlap_parameters"));
  CHECK_THAT(refusal({"strategy.zero=0", "strategy.stack.overlap_parameters=true"}),
             Contains("overlap_parameters_needs_shards"));
  CHECK_FALSE(flag(today({"strategy.stack={like: megatron-core, overlap_tensor: false}", "strategy.tp=2"}),
                   "strategy.stack.overlap_tensor"));
  CHECK(text(today({"collectives.all_reduce=ring"}), "collectives.all_reduce") == "ring");
  CHECK(text(today({"collectives.protocol=none"}), "collectives.protocol") == "none");
  CHECK(text(today({"collectives.protocol=auto"}), "collectives.protocol") == "calibrated");
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
  const Experiment made = today({}, own);
  CHECK(text(made, "model.norm") == "rms_norm");
  CHECK(text(made, "model.activation") == "swiglu");
  CHECK(text(made, "model.position") == "rotary");
  for (const char* key : {"model.tied_embeddings", "model.biases", "model.dropout"}) CHECK_FALSE(flag(made, key));
  CHECK(integer(made, "model.ffn_hidden") == 11'008);  // Llama 2 7B's, Touvron et al. 2023
  CHECK(integer(today({"model.ffn_hidden=14336"}, own), "model.ffn_hidden") == 14'336);
  CHECK(integer(today({"model.activation=gelu"}, own), "model.ffn_hidden") == 4 * 4'096);
  const Experiment gpt = today({}, with(kBare, "llama3-8b", "gpt3-1.3b"));
  CHECK(text(gpt, "model.activation") == "gelu");
  CHECK(flag(gpt, "model.tied_embeddings"));
}

TEST_CASE("what was assumed is said in one line, and survives freezing") {
  const Sweep sweep = parse_sweep(kBare + "axes: {strategy.tp: [1, 2], strategy.zero: [1]}\n", "s.yaml", {}, Catalog());
  CHECK(sweep.assumed ==
        "collectives.all_reduce=auto, collectives.channels=0, collectives.protocol=calibrated, "
        "strategy.global_batch=16, strategy.sequence_parallel=false or true, strategy.stack=megatron-core");
  CHECK(thaw(freeze(sweep)).assumed == sweep.assumed);
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
