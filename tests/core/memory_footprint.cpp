// Memory against the formulas and figures of Korthikanti et al. 2022.
#include "core/memory/footprint.hpp"

#include <catch2/catch.hpp>

#include "core/workload/parameters.hpp"
#include "workload_models.hpp"

using namespace manyworlds::core::memory;
using namespace manyworlds::core::workload;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

Strategy with(Strategy strategy, Recompute recompute, bool sequence_parallel) {
  strategy.recompute = recompute;
  strategy.sequence_parallel = sequence_parallel;
  return strategy;
}

double activations_gib(const Model& model, const Strategy& strategy) {
  return static_cast<double>(activation_bytes_per_layer(model, strategy) * layers_in_flight(model, strategy, 0)) / kGiB;
}

}  // namespace

TEST_CASE("activations per layer are those of Korthikanti's table 2, to the byte") {
  for (const Model& model : {megatron_22b(), gpt3_175b(), megatron_530b(), megatron_1t()})
    for (const std::int64_t t : {1, 2, 8})
      for (const std::int64_t b : {1, 4}) {
        const std::int64_t sbh = 2'048 * b * model.hidden;
        const std::int64_t scores = 5 * model.heads * 2'048 * 2'048 * b;  // 5 a s / h times sbh
        const Strategy strategy = layout(t, 1, b, b);
        const auto bytes = [&](Recompute recompute, bool sequence_parallel) {
          return activation_bytes_per_layer(model, with(strategy, recompute, sequence_parallel));
        };
        CHECK(bytes(Recompute::none, false) == 10 * sbh + 24 * sbh / t + scores / t);
        CHECK(bytes(Recompute::none, true) == (34 * sbh + scores) / t);
        CHECK(bytes(Recompute::selective, false) == 10 * sbh + 24 * sbh / t);
        CHECK(bytes(Recompute::selective, true) == 34 * sbh / t);
        CHECK(bytes(Recompute::full, false) == 2 * sbh);
        CHECK(bytes(Recompute::full, true) == 2 * sbh);
      }
}

TEST_CASE("a Llama layer keeps no masks, fewer keys and values, and three widths of its MLP") {
  const std::int64_t sb = 4'096 * 2, t = 4;
  const Strategy strategy = with(layout(t, 1, 2, 2), Recompute::none, true);
  // Norm and linear inputs 8h; queries 2h, keys and values 2 x 2 x 8/64 h, values' result 2h; gate, up, product 6f.
  const std::int64_t linear = sb * (8 * 8'192 + 2 * 8'192 + 4 * 1'024 + 2 * 8'192 + 6 * 28'672) / t;
  const std::int64_t probabilities = 2 * 64LL * 4'096 * 4'096 * 2 / t;
  CHECK(activation_bytes_per_layer(llama3_70b(), strategy) == linear + probabilities);
  CHECK(activation_bytes_per_layer(llama3_70b(), with(strategy, Recompute::selective, true)) == linear);
}

TEST_CASE("figure 1 of Korthikanti et al.: activations and model state of four models") {
  struct Row {
    Model model;
    Strategy strategy;
    double state, none, selective;  // GB as printed
  };
  const Row rows[] = {{megatron_22b(), layout(8, 1, 4, 4), 45.5625, 59.25, 9.5625},
                      {gpt3_175b(), layout(8, 8, 1, 64, 3), 45.5625, 66.84375, 12.3515625},
                      {megatron_530b(), layout(8, 35, 1, 280, 3), 31.640625, 114.0234375, 23.076171875},
                      {megatron_1t(), layout(8, 64, 1, 512), 32.958984375, 131.25, 26.5625}};
  for (const Row& row : rows) {
    CAPTURE(row.model.hidden);
    CHECK(activations_gib(row.model, with(row.strategy, Recompute::none, false)) == Approx(row.none).epsilon(1e-3));
    CHECK(activations_gib(row.model, with(row.strategy, Recompute::selective, true)) ==
          Approx(row.selective).epsilon(1e-3));
    // The figure's model state is that of the layers: 2 + 4 + 12 bytes a parameter.
    const std::int64_t layers = layer_parameters(row.model, row.strategy, {}).total() * row.model.layers / row.strategy.pp;
    CHECK(static_cast<double>(18 * layers) / kGiB == Approx(row.state).epsilon(1e-3));
  }
}

TEST_CASE(
    "the 175B layout of table 3 holds 124 layers and 16 embedding masks on its first stage, 68 layers on its last") {
  const Model model = gpt3_175b();
  const Strategy strategy = with(layout(8, 8, 1, 64, 3), Recompute::selective, true);
  const std::int64_t sbh = 2'048LL * 12'288;
  const Footprint first = footprint(model, strategy, 0);
  // Alive: 31 chunks of 4 layers. Chunk 0 has run two groups of 8 before its first backward pass.
  CHECK(first.activations == 124 * 34 * sbh / 8 + 16 * sbh / 8);
  CHECK(first.recomputed == 5LL * 96 * 2'048 * 2'048 / 8);
  CHECK(first.logits == 0);
  const std::int64_t parameters = 12 * layer_parameters(model, strategy, {}).total() + (51'200 / 8 + 2'048) * 12'288LL;
  CHECK(first.weights == 2 * parameters);
  CHECK(first.gradients == 4 * parameters);
  CHECK(first.optimizer == 12 * parameters);
  CHECK(first.total() ==
        first.weights + first.gradients + first.optimizer + first.activations + first.recomputed + first.logits);

  // Alive: 17 chunks of 4 layers, and the last chunk's norm and vocabulary inputs. The peak comes when the core is made
  // again; the logits, which take less, are gone by then.
  const Footprint last = footprint(model, strategy, 7);
  CHECK(last.activations == 68 * 34 * sbh / 8 + 4 * sbh / 8);
  CHECK(last.recomputed == first.recomputed);
  CHECK(last.logits == 0);
  CHECK(peak(model, strategy).total() == first.total());
}

TEST_CASE("the last stage holds its logits in fp32 and 16 bits when nothing is recomputed") {
  const Footprint last = footprint(gpt3_175b(), layout(8, 8, 1, 64, 3), 7);
  CHECK(last.logits == 6LL * 2'048 * 51'200 / 8);
  CHECK(last.recomputed == 0);
}

TEST_CASE("GPipe keeps the logits of every micro-batch") {
  Strategy strategy = layout(8, 4, 1, 16);
  strategy.schedule = ScheduleKind::gpipe;
  CHECK(footprint(gpt3_175b(), strategy, 3).logits == (4LL * 16 + 2) * 2'048 * 51'200 / 8);
}

TEST_CASE("ZeRO 1 cuts the optimizer's share over the replicas and nothing else") {
  Strategy strategy = layout(8, 4, 1, 64);
  strategy.dp = 4;
  const Footprint whole = footprint(gpt3_175b(), strategy, 1);
  strategy.zero = 1;
  const Footprint cut = footprint(gpt3_175b(), strategy, 1);
  CHECK(cut.optimizer == whole.optimizer / 4);
  CHECK(cut.total() == whole.total() - whole.optimizer / 4 * 3);
}

TEST_CASE("full recompute adds one live layer to the checkpoints") {
  const Model model = gpt3_175b();
  Strategy strategy = with(layout(8, 4, 1, 64), Recompute::full, false);
  const std::int64_t sbh = 2'048LL * 12'288;
  const Footprint full = footprint(model, strategy, 1);
  CHECK(full.activations == 3 * 24 * 2 * sbh);  // three micro-batches, 24 layers
  // All of a layer, but its input: 13 sbh and 5 a s^2 b / t, less the 2 sbh checkpoint.
  CHECK(full.recomputed == 13 * sbh + 5LL * 96 * 2'048 * 2'048 / 8 - 2 * sbh);
}
