// What is trained of a model of networks, as its file says it: of LLaVA's two stages (Liu et al. 2023, section 4.2) the
// first trains the projector alone, the second all but the vision tower.
#include <catch2/catch.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::workload::trained_parameters;

namespace {

/// Four layers of a tower, a projector, and four layers of text, with options of the model, the tower and the
/// projector.
core::step::Configuration networks(const std::string& model, const std::string& tower, const std::string& projector) {
  const std::string text =
      "base:\n"
      "  model:\n"
      "    layers: 9\n    hidden: 64\n    heads: 4\n    ffn_hidden: 256\n    vocabulary: 512\n    sequence: 256\n" +
      model +
      "    architecture:\n"
      "      networks:\n"
      "        vision: {" +
      tower +
      "hidden: 128, sequence: 64, blocks: {a: [{attention: {causal: false}}, mlp]}, layers: aaaa}\n"
      "        projector: {" +
      projector +
      "sequence: 16, blocks: {m: {mlp: {inputs: 512, norms: none, residual: false}}}, layers: m}\n"
      "        text: {blocks: {a: [attention, mlp]}, layers: aaaa}\n"
      "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
      "  strategy: {tp: 2, micro_batch: 1, global_batch: 8}\n";
  GraphCache graphs;
  return configure(read(text).experiments.at(0), graphs);
}

}  // namespace

TEST_CASE("networks of a model are frozen one by one, and a tower in front of all that is trained runs forward only") {
  // A layer of widths h and f has 4 h^2 + 2 h f weights, and 9 h + f of norms and biases; the projector is 512 x 256
  // and 256 x 64, with biases.
  constexpr std::int64_t kTower = 4 * (4 * 128 * 128 + 2 * 128 * 256 + 9 * 128 + 256),
                         kProjector = 512 * 256 + 256 + 256 * 64 + 64;
  const auto all = networks("", "", "");
  CHECK(trained_parameters(all.model) == core::workload::model_parameters(all.model));

  const auto projector = networks("    frozen: true\n", "", "frozen: false, ");
  CHECK(trained_parameters(projector.model) == kProjector);
  CHECK(core::workload::forward_only_layers(projector.model, projector.strategy) == 4);

  const auto tower = networks("", "frozen: true, ", "");
  CHECK(trained_parameters(tower.model) == trained_parameters(all.model) - kTower);
  // The embedding, which is trained, is before the text alone.
  CHECK(core::workload::forward_only_layers(tower.model, tower.strategy) == 4);

  const auto pairs = networks("    lora_rank: 8\n", "lora_rank: 0, frozen: true, ", "lora_rank: 0, ");
  // Beside queries, keys and values, output, and both layers of the feed-forward network.
  CHECK(trained_parameters(pairs.model) == kProjector + 4 * 8 * (64 + 192 + 64 + 64 + 64 + 256 + 256 + 64));
  CHECK(core::workload::forward_only_layers(pairs.model, pairs.strategy) == 4);
}

TEST_CASE("pairs stand beside all linear layers if none is named, and beside none where that is said") {
  const auto trained = [](const std::string& model, const std::string& tower = "") {
    return trained_parameters(networks(model, tower, "lora_rank: 0, frozen: false, ").model);
  };
  constexpr std::int64_t kProjector = 512 * 256 + 256 + 256 * 64 + 64;
  const std::int64_t all = trained("    lora_rank: 8\n");
  CHECK(all > kProjector);
  CHECK(trained("    lora_rank: 8\n    lora_weights: [linear_fc2, linear_qkv, linear_proj, linear_fc1]\n") == all);
  // Layers of the text have widths of 64 and 256, those of the tower 128 and 256.
  CHECK(trained("    lora_rank: 8\n    lora_weights: none\n", "lora_weights: linear_fc1, ") ==
        kProjector + 4 * 8 * (128 + 256));
}

TEST_CASE("pairs that a model's parts do not have are refused under lora_rank, not under frozen") {
  const std::string rest =
      "  cluster: {gpu: a100_40, nodes: 1, gpus_per_node: 4, nic_gbps: 200}\n"
      "  strategy: {micro_batch: 1, global_batch: 8}\n";
  const std::string model = "base:\n  model: {layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 256, ";
  const std::string mamba = "mamba2: {heads: 4, head_dim: 32, state: 16";
  CHECK_THAT(
      error_of(model + "lora_rank: 16, architecture: {blocks: {m: {" + mamba + "}}}, layers: mmmm}}\n" + rest, {}),
      Catch::Contains("'model.lora_rank' violates rule lora_of_linear_layers: ") &&
          Catch::EndsWith("lora_weights linear_qkv+linear_proj+linear_fc1+linear_fc2, and the model's parts are "
                          "mamba2; attention and mlp are those that have pairs"));
  CHECK_THAT(
      error_of(model + "architecture: {blocks: {m: [{" + mamba + ", lora_rank: 16}}, mlp]}, layers: mmmm}}\n" + rest,
               {}),
      Catch::Contains("block 'm': 'mamba2' has no linear layer for the pairs of lora_rank 16 with lora_weights "
                      "linear_qkv+linear_proj+linear_fc1+linear_fc2"));
}

TEST_CASE("refusals of adapters and of groups of experts say what would be right") {
  const auto refusal = [](const std::string& model) {
    return error_of("base:\n  model: " + model +
                        "\n  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 8}\n"
                        "  strategy: {micro_batch: 1, global_batch: 8}\n",
                    {});
  };
  CHECK_THAT(refusal("{like: falcon-7b, lora_rank: 16}"),
             Catch::EndsWith("the model's parts are parallel_attention; attention and mlp are those that have pairs"));
  CHECK_THAT(refusal("{like: llama3-8b, lora_rank: 16, lora_magnitudes: true, dropout: true}"),
             Catch::Contains("and no dropout, with which each layer would have to run once more: dropout true"));
  CHECK_THAT(refusal("{like: deepseek-v3, expert_groups: 1}"),
             Catch::Contains("change both together, as expert_groups 1 with groups_per_token 0") &&
                 Catch::EndsWith("groups_per_token 4, expert_groups 1"));
  CHECK_THAT(refusal("{like: deepseek-v3, expert_groups: 1, groups_per_token: 0}"),
             !Catch::Contains("groups_per_token"));
}
