// Memory against the formulas and figures of Korthikanti et al. 2022.
#include "core/memory/footprint.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "core/memory/placeholders.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/workload/workload_models.hpp"

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
  return static_cast<double>(
             activation_bytes_per_layer(model, strategy) *
             max_layers_in_flight(model, strategy, pipeline_orders(model, strategy, round_gpu())[0], 0)) /
         kGiB;
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
    const std::int64_t layers =
        layer_parameters(row.model, row.strategy, {}).total() * row.model.layers / row.strategy.pp;
    CHECK(static_cast<double>(18 * layers) / kGiB == Approx(row.state).epsilon(1e-3));
  }
}

TEST_CASE("figure 7 of Korthikanti et al.: what sequence parallelism and recompute leave of a layer's activations") {
  struct Row {
    Model model;
    std::int64_t micro_batch;
    double sequence, selective, both, full;  // % of tensor parallelism alone, as Calculon read them off the figure
  };
  const Row rows[] = {{megatron_22b(), 4, 66.84, 49.42, 16.18, 7.64},
                      {gpt3_175b(), 1, 62.04, 56.53, 18.49, 8.71},
                      {megatron_530b(), 1, 58.31, 62.04, 20.27, 9.42},
                      {megatron_1t(), 1, 58.31, 62.04, 20.27, 9.42}};
  for (const Row& row : rows) {
    CAPTURE(row.model.hidden);
    const auto percent = [&](Recompute recompute, bool sequence_parallel) {
      const auto bytes = [&](Recompute given, bool in_sequence) {
        const Strategy strategy = layout(8, 1, row.micro_batch, row.micro_batch);
        return static_cast<double>(activation_bytes_per_layer(row.model, with(strategy, given, in_sequence)));
      };
      return 100 * bytes(recompute, sequence_parallel) / bytes(Recompute::none, false);
    };
    // The figure shows the formulas 10 + 24/t + scores, (34 + scores t)/t, 10 + 24/t, 34/t and 2, times sbh.
    const double scores =
        5.0 * static_cast<double>(row.model.heads * 2'048) / static_cast<double>(row.model.hidden * 8);
    const double all = 13 + scores;
    const double formulas[] = {100 * (4.25 + scores) / all, 1300 / all, 425 / all, 200 / all};
    const double ours[] = {percent(Recompute::none, true), percent(Recompute::selective, false),
                           percent(Recompute::selective, true), percent(Recompute::full, true)};
    const double read_off[] = {row.sequence, row.selective, row.both, row.full};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(ours[i] == Approx(formulas[i]).epsilon(1e-3));
      CHECK(ours[i] == Approx(read_off[i]).margin(0.15));  // points: a bar's end is read to some tenth of one
    }
  }
}

TEST_CASE(
    "the 175B layout of table 3 holds 124 layers and 16 embedding masks on its first stage, 68 layers on its last") {
  const Model model = gpt3_175b();
  const Strategy strategy = with(layout(8, 8, 1, 64, 3), Recompute::selective, true);
  const std::int64_t sbh = 2'048LL * 12'288;
  const Footprint first = footprint(model, strategy, {}, 0);
  // Alive: 31 chunks of 4 layers. Chunk 0 has run two groups of 8 before its first backward pass.
  CHECK(first.activations == 124 * 34 * sbh / 8 + 16 * sbh / 8);
  CHECK(first.recomputed == 5LL * 96 * 2'048 * 2'048 / 8);
  CHECK(first.logits == 0);
  const std::int64_t parameters = 12 * layer_parameters(model, strategy, {}).total() + (51'200 / 8 + 2'048) * 12'288LL;
  CHECK(first.weights == 2 * parameters);
  CHECK(first.gradients == 4 * parameters);
  CHECK(first.optimizer == 12 * parameters);
  // While a core is made again: gradients of its scores before and after softmax, and of the residual stream.
  CHECK(first.working == 2 * 2 * 96LL * 2'048 * 2'048 / 8 + 2 * sbh);
  CHECK(first.gathered == 0);

  // Alive: 17 chunks of 4 layers, and the last chunk's norm and vocabulary inputs. The peak comes when the core is made
  // again; the logits, which take less, are gone by then.
  const Footprint last = footprint(model, strategy, {}, 7);
  CHECK(last.activations == 68 * 34 * sbh / 8 + 4 * sbh / 8);
  CHECK(last.recomputed == first.recomputed);
  CHECK(last.logits == 0);
  CHECK(peak(model, strategy, {}).total() == first.total());
}

/// So many words that the logits outweigh what a layer's backward pass needs.
Model wordy() {
  Model model = gpt3_175b();
  model.vocabulary = 524'288;
  return model;
}

TEST_CASE("the last stage holds its logits in fp32 and 16 bits when nothing is recomputed") {
  Strategy strategy = layout(8, 8, 8, 512, 3);
  const Footprint last = footprint(wordy(), strategy, {}, 7);
  CHECK(last.logits == 6LL * 8 * 2'048 * 524'288 / 8);
  CHECK(last.recomputed == 0);
  CHECK(last.working == 0);
  strategy.stack.fused_loss = true;
  CHECK(footprint(wordy(), strategy, {}, 7).logits == 10LL * 8 * 2'048 * 524'288 / 8);
}

TEST_CASE("with few tokens the last stage peaks in the head's backward pass, with the gradient of its weight") {
  Strategy strategy = layout(8, 8, 1, 64, 3);
  const std::int64_t weight = 12'288LL * 524'288 / 8, hidden = 2'048LL * 12'288;
  const Footprint whole = footprint(wordy(), strategy, {}, 7);
  CHECK(whole.logits == 2LL * 2'048 * 524'288 / 8);
  CHECK(whole.working == 2 * weight + 2 * hidden);
  // Its input is gathered again, and the gradient of that is reduced to the rank's share.
  strategy.sequence_parallel = true;
  CHECK(footprint(wordy(), strategy, {}, 7).working == 2 * weight + 2 * (2 * hidden + hidden / 8));
}

TEST_CASE("the first stage peaks with the gradient of a large vocabulary's table if its layers hold little") {
  Model model = wordy();
  model.layers = 8;
  Strategy strategy = with(layout(8, 8, 1, 1), Recompute::full, false);
  CHECK(footprint(model, strategy, {}, 0).working == 2 * (12'288LL * 524'288 / 8 + 2'048LL * 12'288));
}

TEST_CASE("Transformer Engine keeps one gradient that nobody reads for each shape of a weight") {
  const Model model = llama3_70b();
  Strategy strategy = layout(2, 2, 1, 8);
  const auto kept = [&] { return placeholder_gradients(model, strategy, 1).bytes; };
  CHECK(kept() == 0);
  strategy.stack.layers = LayerLibrary::transformer_engine;
  const std::int64_t qkv = 8'192 + 2 * 1'024, output = 8'192, up = 2 * 28'672, down = 28'672;
  CHECK(kept() == 2 * 8'192 * (qkv + output + up + down) / 2);
  const std::int64_t before = footprint(model, strategy, {}, 1).workspaces;
  strategy.stack.gradient_accumulation_fusion = false;
  CHECK(kept() == 0);
  CHECK(before - footprint(model, strategy, {}, 1).workspaces == 8'192 * (qkv + output + up + down));
}

TEST_CASE("all experts of a rank share the gradients that nobody reads") {
  Model model = llama3_70b();
  Strategy strategy = layout(1, 1, 1, 8);
  strategy.stack.layers = LayerLibrary::transformer_engine;
  const std::int64_t dense = placeholder_gradients(model, strategy, 0).bytes;
  model.experts = 8, model.experts_per_token = 2, model.expert_ffn_hidden = 2'048;
  CHECK(placeholder_gradients(model, strategy, 0).bytes == dense - 2 * 8'192 * 3 * (28'672 - 2'048));
}

TEST_CASE("GPipe keeps the logits of every micro-batch") {
  Strategy strategy = layout(8, 4, 1, 16);
  strategy.schedule = schedule_by_name("gpipe");
  const Footprint last = footprint(wordy(), strategy, {}, 3);
  // The first backward pass begins when all have run forward. The head's own then takes the place of the loss's.
  CHECK(last.logits == (4LL * 15 + 2) * 2'048 * 524'288 / 8);
  CHECK(last.working > 4LL * 2'048 * 524'288 / 8);
}

TEST_CASE("the peak of a long step is the largest of all ranks over all their passes") {
  for (const auto& [schedule, chunks] : {std::pair("1f1b", 1), {"interleaved", 2}, {"interleaved", 3}, {"gpipe", 1}})
    for (const std::int64_t pp : {1, 2, 4, 8})
      for (const std::int64_t groups : {1, 3, 4, 5, 7, 16})
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          if (pp == 1 && chunks > 1) continue;
          Strategy strategy = layout(8, pp, 1, groups * pp);
          strategy.schedule = schedule_by_name(schedule);
          strategy.virtual_stages = chunks;
          strategy.recompute = recompute;
          CAPTURE(schedule, chunks, pp, groups);
          Footprint largest;
          for (const RankClass& rank : rank_classes(gpt3_175b(), strategy)) {
            const Footprint other = footprint(gpt3_175b(), strategy, {}, rank);
            if (other.total() > largest.total()) largest = other;
          }
          const Footprint found = peak(gpt3_175b(), strategy, {});
          for (const FootprintPart& part : footprint_parts()) CHECK(found.*part.member == largest.*part.member);
        }
}

TEST_CASE("ZeRO 1 cuts the optimizer's share over the replicas and nothing else") {
  Strategy strategy = layout(8, 4, 1, 64);
  strategy.dp = 4;
  const Footprint whole = footprint(gpt3_175b(), strategy, {}, 1);
  strategy.zero = 1;
  const Footprint cut = footprint(gpt3_175b(), strategy, {}, 1);
  CHECK(cut.optimizer == whole.optimizer / 4);
  CHECK(cut.allocated() == whole.allocated() - whole.optimizer / 4 * 3);
}

TEST_CASE("full recompute adds one live layer to the checkpoints") {
  const Model model = gpt3_175b();
  Strategy strategy = with(layout(8, 4, 1, 64), Recompute::full, false);
  const std::int64_t sbh = 2'048LL * 12'288;
  const Footprint full = footprint(model, strategy, {}, 1);
  CHECK(full.activations == 3 * 24 * 2 * sbh);  // three micro-batches, 24 layers
  // All of a layer, but its input: 13 sbh and 5 a s^2 b / t, less the 2 sbh checkpoint.
  CHECK(full.recomputed == 13 * sbh + 5LL * 96 * 2'048 * 2'048 / 8 - 2 * sbh);
}

TEST_CASE("each ZeRO stage cuts one more part of the model state over the replicas") {
  const Model model = gpt3_175b();
  Strategy strategy = layout(8, 1, 1, 64);
  strategy.dp = 16;
  const std::int64_t parameters = stage_parameters(model, strategy, 0).total(), share = parameters / 16;
  const std::int64_t layer = layer_parameters(model, strategy, {}).total();
  const std::int64_t outside = parameters - 96 * layer;
  for (std::int64_t zero = 0; zero <= 3; ++zero) {
    CAPTURE(zero);
    strategy.zero = zero;
    const Footprint rank = footprint(model, strategy, {}, 0);
    CHECK(rank.optimizer == 12 * (zero >= 1 ? share : parameters));
    CHECK(rank.gradients == 4 * (zero >= 2 ? share : parameters));
    CHECK(rank.weights == 2 * (zero >= 3 ? share : parameters));
    // Two layers at a time are whole, and the embedding.
    CHECK(rank.gathered == (zero >= 2 ? 4 * 2 * layer : 0) + (zero >= 3 ? 2 * (2 * layer + outside) : 0));
  }
}

TEST_CASE("less is in memory with every step of recomputation and of ZeRO") {
  for (const Model& model : {gpt3_175b(), llama3_70b()})
    for (const std::int64_t tp : {1, 8})
      for (const std::int64_t pp : {1, 4}) {
        Strategy strategy = layout(tp, pp, 1, 64);
        strategy.dp = 8;
        CAPTURE(model.hidden, tp, pp);
        std::int64_t before = std::numeric_limits<std::int64_t>::max();
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          strategy.recompute = recompute;
          const std::int64_t bytes = peak(model, strategy, {}).allocated();
          CHECK(bytes < before);
          before = bytes;
        }
        for (strategy.zero = 1; strategy.zero <= 3; ++strategy.zero) {
          const std::int64_t bytes = peak(model, strategy, {}).allocated();
          CHECK(bytes < before);
          before = bytes;
        }
      }
}

TEST_CASE("gradients in 16 bits take half, and the optimizer copies of its share in fp32") {
  Strategy strategy = layout(8, 4, 1, 64);
  strategy.dp = 4;
  strategy.zero = 1;
  const Footprint wide = footprint(gpt3_175b(), strategy, {}, 1);
  Strategy reduced = strategy, half = strategy;
  reduced.stack.reduce_in_16bit = true;
  half.stack.precision = Precision::fp16;
  for (const Strategy& narrow : {reduced, half}) {
    const Footprint rank = footprint(gpt3_175b(), narrow, {}, 1);
    CHECK(2 * rank.gradients == wide.gradients);
    CHECK(3 * rank.optimizer == 4 * wide.optimizer);
  }
}

TEST_CASE("libraries take workspaces by GPU and stack, and buffers for every group of ranks") {
  constexpr std::int64_t mib = 1 << 20;
  manyworlds::core::compute::Gpu gpu;
  gpu.gemm_workspace_mib = 8;
  gpu.engine_workspace_mib = 32;
  gpu.communicator_mib = 100;
  gpu.context_mib = 500;
  Strategy strategy = layout(8, 4, 1, 64);
  const std::int64_t scores = 2 * 96LL * 2'048 * 2'048 / 8;
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).workspaces == 16 * mib + scores);
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).communicators == 200 * mib);
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).context == 500 * mib);
  strategy.dp = 2;
  strategy.stack.layers = LayerLibrary::transformer_engine;
  const std::int64_t placeholders = placeholder_gradients(gpt3_175b(), strategy, 1).bytes;
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).workspaces == (16 + 32) * mib + placeholders);
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).communicators == 300 * mib);
  strategy.stack.deterministic = true;
  CHECK(footprint(gpt3_175b(), strategy, gpu, 1).workspaces == (64 + 32) * mib + placeholders);
}

TEST_CASE("the parts of a footprint are its total, and those outside the framework's allocator are not allocated") {
  Footprint bytes;
  std::int64_t next = 1;
  for (const FootprintPart& part : footprint_parts()) bytes.*part.member = next, next *= 2;
  CHECK(footprint_parts().size() * sizeof(std::int64_t) == sizeof(Footprint));
  CHECK(bytes.total() == next - 1);
  CHECK(bytes.allocated() == bytes.total() - bytes.rounding - bytes.communicators - bytes.context);
}

TEST_CASE("a layer with experts keeps what its share of the tokens needs, once per expert that they go to") {
  Model model = qwen3_30b_a3b();
  model.shared_ffn_hidden = 768;
  Strategy strategy = layout(2, 1, 1, 64);
  strategy.sequence_parallel = true;
  strategy.dp = 8;
  strategy.stack.attention = AttentionKernel::cudnn;
  const std::int64_t tokens = 4'096, hidden = 2'048, region = tokens / 2, experts = 128;
  const auto feed_forward = [&](const Strategy& given) {
    // The same attention before a narrow dense layer, whose input, gate, up and product are known.
    Model dense = model;
    dense.experts = 0, dense.ffn_hidden = 768;
    const std::int64_t known = 2 * region * hidden + 3 * 2 * tokens * 768 / 2;
    return activation_bytes_per_layer(model, given, {.experts = true}) - activation_bytes_per_layer(dense, given) +
           known;
  };
  const std::int64_t router = 2 * region * hidden + 8 * region * experts, shared = 3 * 2 * tokens * 768 / 2;
  const auto routed = [&](std::int64_t count, std::int64_t ffn) { return 2 * count * (hidden + 3 * ffn); };
  CHECK(feed_forward(strategy) == router + shared + routed(8 * region, 768));
  strategy.ep = 8;
  CHECK(feed_forward(strategy) == router + shared + routed(8 * region, 768));
  strategy.etp = 2;  // both tensor ranks bring their tokens to half an expert
  CHECK(feed_forward(strategy) == router + shared + routed(16 * region, 384));
  // Unless one kernel weights the products by the tokens' probabilities, they are saved before that, as are the
  // sigmoids of the unfused SwiGLU, here and in the shared expert.
  const std::int64_t fused = feed_forward(strategy);
  Strategy unfused = strategy;
  unfused.stack.bias_activation_fusion = false;
  Model dense = model;
  dense.experts = 0, dense.ffn_hidden = 768;
  const std::int64_t sigmoids_of_dense =
      activation_bytes_per_layer(dense, unfused) - activation_bytes_per_layer(dense, strategy);
  CHECK(feed_forward(unfused) + sigmoids_of_dense - fused == 2 * 2 * 16 * region * 384 + 2 * tokens * 768 / 2);
}
