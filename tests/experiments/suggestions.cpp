// Which known name is suggested for an unknown one, and of which kind it must be.
#include <catch2/catch.hpp>

#include "experiments/text/nearest.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;
using Catch::EndsWith;

TEST_CASE("a name is suggested if so few letters differ that it is likely meant") {
  const auto meant = [](const std::string& given, const std::string& known) {
    return suggestion(given, {known}) == "; did you mean '" + known + "'?";
  };
  // One letter, or two that changed places, of any word.
  for (const auto& [given, known] : {std::pair("tpp", "tp"),
                                     {"mpl", "mlp"},
                                     {"globl_batch", "global_batch"},
                                     {"iases", "biases"},
                                     {"hidden", "hiden"}})
    CHECK(meant(given, known));
  // One of three letters of a word that begins alike, two of five if half of it is the same.
  CHECK(meant("sequense", "sequence"));
  CHECK(meant("oversubscribed", "oversubscription"));
  CHECK(meant("batcgh_sxze", "batch_size"));
  // Others are other words.
  for (const auto& [given, known] : {std::pair("phases", "biases"),
                                     {"pools", "tools_"},
                                     {"ab", "cd"},
                                     {"cost", "host"},
                                     {"expert_exchange", "gradient_exchange"},
                                     {"node", "mode_s"}}) {
    INFO(given);
    CHECK(meant(given, known) == (edit_distance(given, known) == 1));
  }
}

TEST_CASE("keys of other sections are suggested if they can take the value") {
  CHECK_THAT(error_of(kSingle, {"biasses=true"}), Contains("did you mean 'biases'?"));
  CHECK_THAT(error_of(kSingle, {"biasses=3"}), !Contains("did you mean"));
  CHECK_THAT(error_of(kSingle, {"globl_batch=wide"}), !Contains("did you mean"));
}

TEST_CASE("the last words of an unknown key are a key that is meant") {
  CHECK_THAT(error_of(kSingle, {"strategy.stack={like: megatron-core, expert_dispatcher: deepep}"}),
             EndsWith("unknown key 'strategy.stack.expert_dispatcher'; did you mean 'dispatcher'?"));
  CHECK_THAT(error_of(kSingle, {"strategy.expert_dispatcher=deepep"}),
             EndsWith("did you mean 'strategy.stack.dispatcher'?"));
}

TEST_CASE("keys of other documents are told") {
  const std::string where = "phases and their pools are a document of `manyworlds phases`";
  CHECK_THAT(error_of(kSingle, {"phases=1"}), EndsWith(where));
  CHECK_THAT(error_of(kSingle + "phases: []\n"), EndsWith(where));
}

TEST_CASE("what begins as a model of the catalog is the model itself") {
  CHECK_THAT(
      error_of(kSingle, {"model.like=llama3-8b"}),
      EndsWith("unknown key 'model.like'; it is model=llama3-8b, or model={like: llama3-8b, KEY: VALUE} with what "
               "is otherwise than there"));
}

TEST_CASE("an option of a component that is not chosen tells how it is") {
  CHECK_THAT(error_of(kSingle, {"routing.zipf.exponent=1.2"}),
             EndsWith("'routing.zipf.exponent' is an option of routing 'zipf', but 'balanced' is chosen here; choose "
                      "'zipf' with it, as in routing={zipf: {exponent: 1.2}}"));
  CHECK_THAT(error_of(kSingle, {"routing.exponent=1.2"}), EndsWith("it is an option of 'zipf'"));
  CHECK_THAT(error_of(kSingle, {"routing={zipf: 1.2}"}),
             EndsWith("'routing.zipf' must be a mapping of options (exponent, seed), not '1.2'"));
}

TEST_CASE("an axis of components may be given one by its name") {
  const std::string experts =
      "base:\n  model: {layers: 2, hidden: 64, heads: 4, vocabulary: 512, experts: 8}\n"
      "  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 4, nic_gbps: 200}\n"
      "  strategy: {micro_batch: 1, global_batch: 8}\naxes:\n  routing: [balanced, {zipf: {exponent: 0.5}}]\n";
  const Sweep sweep = read(experts, {"routing.zipf={exponent: 2}"});
  REQUIRE(sweep.experiments.size() == 1);
  CHECK(std::get<double>(sweep.experiments[0].settings.at("routing.exponent")) == 2);
}

TEST_CASE("what no point holds is said first, though fewer points break it first") {
  // Rows of tp 8 x pp 2 lack GPUs, all have magnitudes without pairs.
  const std::string message = error_of(
      "base:\n  model: {layers: 8, hidden: 64, heads: 8, vocabulary: 512, lora_magnitudes: true}\n"
      "  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 8, nic_gbps: 200}\n"
      "  strategy: {micro_batch: 1, global_batch: 8}\naxes:\n  strategy.tp: [8, 4]\n  strategy.pp: [1, 4, 8]\n");
  CHECK_THAT(message,
             Contains("no valid point: lora_magnitudes needs pairs") && Contains("(magnitudes_of_pairs); all 6"));
}
