// Parameter counts against those their authors publish.
#include "core/workload/layer/layer_parameters.hpp"

#include <catch2/catch.hpp>

#include "core/workload/strategy/rank_shapes.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core::workload;

TEST_CASE("GPT models have the parameters their authors count") {
  const auto gpt3 = static_cast<double>(model_parameters(gpt(96, 12'288, 96, 50'257)));
  CHECK(gpt3 == Approx(174'600e6).epsilon(1e-4));                           // Brown et al. 2020, table D.1
  CHECK(model_parameters(gpt(96, 12'288, 96, 50'257)) == 174'604'259'328);  // 12Lh^2 + 13Lh + (V + s + 2)h
  Model gpt2_xl = gpt(48, 1'600, 25, 50'257);
  gpt2_xl.sequence = 1'024;
  CHECK(model_parameters(gpt2_xl) == 1'557'611'200);  // the released checkpoint
}

TEST_CASE("Llama models have the parameters of the released checkpoints") {
  CHECK(model_parameters(llama3_70b()) == 70'553'706'496);
  CHECK(model_parameters(llama(32, 4'096, 32, 8, 14'336, 128'256)) == 8'030'261'248);   // Llama 3 8B
  CHECK(model_parameters(llama(32, 4'096, 32, 32, 11'008, 32'000)) == 6'738'415'616);   // Llama 2 7B
  CHECK(model_parameters(llama(40, 5'120, 40, 40, 13'824, 32'000)) == 13'015'864'320);  // Llama 2 13B
}

TEST_CASE("models with experts have the parameters of the released checkpoints") {
  CHECK(model_parameters(qwen3_30b_a3b()) == 30'532'122'624);
  CHECK(model_parameters(qwen3_235b_a22b()) == 235'093'634'560);
  // Besides, the checkpoint has a correction bias per expert, which no gradient touches.
  CHECK(model_parameters(deepseek_v3()) == 671'026'419'200 - 58 * 256);
  // Besides, each head of each layer has a sink logit.
  CHECK(model_parameters(gpt_oss_120b()) == 116'829'156'672 - 36 * 64);
}

TEST_CASE("of models with experts a token visits the parameters that their authors count as active") {
  const auto billions = [](std::int64_t parameters) { return static_cast<double>(parameters) / 1e9; };
  CHECK(billions(active_parameters(qwen3_30b_a3b())) == Approx(3.3).margin(0.06));
  CHECK(billions(active_parameters(qwen3_235b_a22b())) == Approx(22).margin(0.2));
  CHECK(billions(active_parameters(deepseek_v3())) == Approx(37).margin(0.6));
  CHECK(billions(active_parameters(mixtral_8x7b())) == Approx(12.9).margin(0.05));
  const std::int64_t table = 201'088 * 2'880;  // the paper's table 1 leaves the embedding out
  CHECK(billions(active_parameters(gpt_oss_120b()) - table) == Approx(5.13).margin(0.005));
}

TEST_CASE("experts are cut over ep x etp ranks, everything else over tp alone") {
  const Model model = deepseek_v3();
  for (const auto& [tp, ep, etp] : {std::tuple{1, 1, 1}, {1, 64, 1}, {2, 32, 1}, {4, 8, 4}, {8, 256, 1}}) {
    Strategy strategy = layout(tp, 1, 1, 64);
    strategy.ep = ep, strategy.etp = etp, strategy.dp = 256 / tp * etp;
    CAPTURE(tp, ep, etp);
    const Parameters rank = stage_parameters(model, strategy, 0);
    CHECK(rank.experts * ep * etp == 58LL * 256 * 3 * 7'168 * 2'048);
    std::int64_t replicated = final_norm_parameters(model);
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      replicated += replicated_layer_parameters(model, strategy, model.layer_kind(layer));
    const std::int64_t padding = 2 * (padded_vocabulary(model, tp) - model.vocabulary) * model.hidden;
    CHECK(rank.dense * tp - (tp - 1) * replicated + rank.experts * ep * etp == model_parameters(model) + padding);
    CHECK(strategy.expert_replicas() * ep * etp == tp * strategy.dp);
  }
}

TEST_CASE("ranks together hold every parameter once, replicated ones once per tensor rank, a tied table twice") {
  for (const Model& model : {gpt3_175b(), llama3_70b()})
    for (const std::int64_t tp : {1, 2, 8})
      for (const std::int64_t pp : {1, 2, 8}) {
        std::int64_t held = 0;
        for (std::int64_t stage = 0; stage < pp; ++stage)
          held += tp * stage_parameters(model, layout(tp, pp, 1, 8), stage).total();
        const std::int64_t positions = model.position == Position::learned ? model.sequence * model.hidden : 0;
        const std::int64_t replicated = model.layers * replicated_layer_parameters(model, layout(tp, pp, 1, 8), {}) +
                                        positions + final_norm_parameters(model);
        const std::int64_t table = padded_vocabulary(model, tp) * model.hidden;
        const std::int64_t tables = model.tied_embeddings && pp == 1 ? table : 2 * table;
        const std::int64_t plain_tables = (model.tied_embeddings ? 1 : 2) * model.vocabulary * model.hidden;
        CAPTURE(tp, pp);
        CHECK(held == model_parameters(model) + (tp - 1) * replicated + tables - plain_tables);
      }
}

TEST_CASE("the vocabulary is padded to a multiple of 128 x tp") {
  CHECK(padded_vocabulary(gpt(1, 128, 1, 50'257), 1) == 50'304);
  CHECK(padded_vocabulary(gpt(1, 128, 1, 50'257), 8) == 51'200);
  CHECK(padded_vocabulary(gpt(1, 128, 1, 51'200), 8) == 51'200);
}

TEST_CASE("uneven splits give every layer to one chunk, in order, lighter where they say") {
  const auto layers_of = [](std::int64_t layers, std::int64_t pp, std::int64_t virtual_stages, LayerSplit split) {
    Model model = gpt(layers, 512, 8);
    Strategy strategy;
    strategy.pp = pp;
    strategy.virtual_stages = virtual_stages;
    strategy.split = split;
    std::vector<std::size_t> counts;
    for (std::int64_t chunk = 0; chunk < virtual_stages; ++chunk)
      for (std::int64_t stage = 0; stage < pp; ++stage)
        counts.push_back(chunk_layers(model, strategy, stage, chunk).size());
    return counts;
  };
  using Counts = std::vector<std::size_t>;
  CHECK(layers_of(8, 2, 2, LayerSplit::even) == Counts{2, 2, 2, 2});
  CHECK(layers_of(22, 8, 1, LayerSplit::light_ends) == Counts{2, 3, 3, 3, 3, 3, 3, 2});  // Qi et al. 2024, 1.5B
  CHECK(layers_of(14, 2, 2, LayerSplit::light_ends) == Counts{3, 4, 4, 3});
  CHECK(layers_of(61, 4, 4, LayerSplit::light_last) == Counts{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1});
}

TEST_CASE("layers and head are dealt out by their costs as nanotron does it") {
  // The splits that nanotron's build_model() gives the models of its ultrascale-playbook, and the stage of the head.
  struct Row {
    std::int64_t layers, hidden, heads, ffn, pp, head;
    std::vector<std::int64_t> split;
  };
  const std::vector<Row> rows{
      {16, 2'048, 32, 8'192, 2, 1, {11, 5}},
      {16, 2'048, 32, 8'192, 4, 3, {6, 5, 5, 0}},
      {16, 2'048, 32, 8'192, 8, 6, {3, 3, 2, 3, 2, 3, 0, 0}},
      {16, 2'048, 32, 8'192, 16, 12, {2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 0, 0, 0, 0}},
      {32, 4'096, 32, 14'336, 2, 1, {18, 14}},
      {32, 4'096, 32, 14'336, 4, 3, {9, 9, 8, 6}},
      {32, 4'096, 32, 14'336, 8, 7, {5, 4, 4, 5, 4, 4, 4, 2}},
      {32, 4'096, 32, 14'336, 16, 14, {3, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 0}},
  };
  for (const Row& row : rows) {
    Model model = gpt(row.layers, row.hidden, row.heads, 131'072);
    model.ffn_hidden = row.ffn;
    const SplitByCost split = split_by_cost(model, row.pp);
    CAPTURE(row.layers, row.pp);
    CHECK(split.layers == row.split);
    CHECK(split.head_stage == row.head);
    // The head is in the last stage here, with the layers of its stage.
    Strategy strategy;
    strategy.pp = row.pp;
    strategy.split = LayerSplit::by_cost;
    std::vector<std::int64_t> counts;
    for (std::int64_t stage = 0; stage < row.pp; ++stage)
      counts.push_back(static_cast<std::int64_t>(chunk_layers(model, strategy, stage, 0).size()));
    std::vector<std::int64_t> expected = row.split;
    std::swap(expected[static_cast<std::size_t>(row.head)], expected.back());
    CHECK(counts == expected);
  }
}

TEST_CASE("layers of sections as they are listed, or with empty ones behind that take no parameters and no time") {
  const auto layers_of = [](const Model& model, const Strategy& strategy) {
    std::vector<std::size_t> counts;
    for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
      for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
        counts.push_back(chunk_layers(model, strategy, stage, chunk).size());
    return counts;
  };
  using Counts = std::vector<std::size_t>;
  Strategy strategy = layout(1, 3, 1, 6, 2);
  strategy.stage_layers = {1, 4, 4, 4, 2, 0};
  CHECK(layers_of(gpt(15, 512, 8), strategy) == Counts{1, 4, 4, 4, 2, 0});
  // ceil(61 / 16) x 16 = 64 and ceil(15 / 6) x 6 = 18 (Megatron-LM pads likewise, allow-padding-num-layers).
  strategy.stage_layers.clear();
  strategy.empty_layers = 3;
  CHECK(layers_of(gpt(15, 512, 8), strategy) == Counts{3, 3, 3, 3, 3, 0});
  Strategy deep = layout(1, 8, 1, 16, 2);
  deep.empty_layers = 3;
  Counts expected(16, 4);
  expected.back() = 1;
  CHECK(layers_of(gpt(61, 512, 8), deep) == expected);
  std::int64_t parameters = 0;
  for (std::int64_t stage = 0; stage < 3; ++stage)
    parameters += stage_parameters(gpt(15, 512, 8), strategy, stage).total();
  Strategy whole = layout(1, 1, 1, 6);
  Model untied = gpt(15, 512, 8);
  untied.tied_embeddings = false;
  std::int64_t apart = 0;
  for (std::int64_t stage = 0; stage < 3; ++stage) apart += stage_parameters(untied, strategy, stage).total();
  CHECK(apart == stage_parameters(untied, whole, 0).total());
  CHECK(parameters == stage_parameters(gpt(15, 512, 8), whole, 0).total() + token_table_parameters(gpt(15, 512, 8), 1));
}
