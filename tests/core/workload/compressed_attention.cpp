// Attention to compressed tokens, hyper-connections and contrastive heads take the FLOPs of plain loops, backwards too.
#include <catch2/catch.hpp>

#include <algorithm>

#include "core/memory/footprint.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/layer/layer_input.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

constexpr I kTokens = 512, kHidden = 256, kHeads = 16, kWidth = 32;

Model small(const std::string& type, const OptionSet& own) {
  Model model = llama(4, kHidden, kHeads, kHeads, 512, 1'024);
  model.sequence = kTokens;
  model.head_dim = kWidth;
  BranchOptions bare;
  bare.norms = BranchNorms::none, bare.residual = false;
  return described(model, {{branch_of(model, type, own, bare)}}, {0, 0, 0, 0});
}

I flops(const Model& model, const std::string& name, OpList Operator::*direction, const Strategy& strategy) {
  I sum = 0;
  for (const Operator& each : layer_operators(model, strategy, model.layer_kind(0)))
    if (name.empty() || each.name == name)
      for (const WorkItem& work : each.*direction)
        if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}
I flops(const Model& model, const std::string& name, OpList Operator::*direction) {
  return flops(model, name, direction, layout(1, 1, 1, 1));
}

I weights(const Model& model) {
  return layer_parameters(model, layout(1, 1, 1, 1), model.layer_kind(0)).total();
}

/// Pairs of a token with what it sees, counted one by one.
struct SeenPairs {
  I window = 0, before = 0, selected = 0;

  SeenPairs(I window_keys, I ratio, I index_keys) {
    for (I token = 0; token < kTokens; ++token) {
      for (I key = std::max<I>(0, token - window_keys + 1); key <= token; ++key) ++window;
      I entries = 0;
      for (I entry = 0; (entry + 1) * ratio <= token + 1; ++entry) ++entries;  // all of whose tokens are seen
      before += entries;
      selected += std::min(entries, index_keys);
    }
  }
};

}  // namespace

TEST_CASE("compressed attention takes the FLOPs of its loops, and every matrix two products backwards") {
  constexpr I kWindow = 64, kRatio = 8, kIndexHeads = 8, kIndexWidth = 32, kIndexKeys = 16, kQuery = 64, kOutput = 64;
  const OptionSet own = find_part_type("compressed_attention")->example;
  const Model model = small("compressed_attention", own);
  // Kernels count pairs as an integral: a token has half a pair of the window less than it sees, and an entry is there
  // half of its tokens early.
  const SeenPairs seen(kWindow, kRatio, kIndexKeys);
  const I window = seen.window - kWindow / 2, before = seen.before + kTokens / 2 - kTokens / kRatio;
  const I selected = seen.selected + kIndexKeys * kRatio / 2 - kIndexKeys;
  CHECK(flops(model, "attention", &Operator::forward) == 2 * kHeads * 2 * kWidth * (window + selected));
  CHECK(flops(model, "attention", &Operator::backward) == 2 * kHeads * 5 * kWidth * (window + selected));
  CHECK(flops(model, "index_scores", &Operator::forward) ==
        2 * kIndexHeads * kIndexWidth * before + 2 * kHeads * kWidth * selected);
  CHECK(flops(model, "index_scores", &Operator::backward) == 2 * kIndexHeads * 3 * kIndexWidth * selected);
  const auto product = [](I in, I out) { return 2 * kTokens * in * out; };
  for (const auto& [name, once] : {std::pair{"query_down", product(kHidden, kQuery)},
                                   {"query_up", product(kQuery, kHeads * kWidth)},
                                   {"key_value", product(kHidden, kWidth)},
                                   {"compressor", 2 * product(kHidden, kWidth)},
                                   {"output_group", product(kHeads * kWidth, kOutput)},
                                   {"attention_output", product(kOutput, kHidden)}}) {
    CAPTURE(name);
    CHECK(flops(model, name, &Operator::forward) == once);
    CHECK(flops(model, name, &Operator::backward) == 2 * once);
  }
  // The index gives its inputs no gradient.
  for (const auto& [name, once] :
       {std::pair{"index_compressor", 2 * product(kHidden, kIndexWidth)},
        {"index", product(kQuery, kIndexHeads * kIndexWidth) + product(kHidden, kIndexHeads)}}) {
    CAPTURE(name);
    CHECK(flops(model, name, &Operator::forward) == once);
    CHECK(flops(model, name, &Operator::backward) == once);
  }
  const I compressor = 2 * kHidden * kWidth + kRatio * kWidth + kWidth;
  const I index = kQuery * kIndexHeads * kIndexWidth + kHidden * kIndexHeads + 2 * kHidden * kIndexWidth +
                  kRatio * kIndexWidth + kIndexWidth;
  const I attention = kHidden * (kQuery + kWidth) + kQuery + kWidth + kQuery * kHeads * kWidth +
                      kHeads * kWidth * kOutput + kOutput * kHidden + kHeads;
  CHECK(weights(model) == attention + compressor + index);
  // Without an index all entries are read; without entries the window alone.
  OptionSet whole = own;
  whole["index_heads"] = I{0};
  CHECK(flops(small("compressed_attention", whole), "attention", &Operator::forward) ==
        4 * kHeads * kWidth * (window + before));
  whole["ratio"] = I{0};
  CHECK(flops(small("compressed_attention", whole), "attention", &Operator::forward) == 4 * kHeads * kWidth * window);
  CHECK(weights(small("compressed_attention", whole)) == attention);
}

TEST_CASE("overlapping entries have two projections of a token each") {
  OptionSet own = find_part_type("compressed_attention")->example;
  const Model single = small("compressed_attention", own);
  own["series"] = I{2};
  const Model both = small("compressed_attention", own);
  CHECK(flops(both, "compressor", &Operator::forward) == 2 * flops(single, "compressor", &Operator::forward));
  CHECK(weights(both) - weights(single) == (kWidth + 32) * (2 * kHidden + 8));
}

TEST_CASE("hyper-connections multiply all streams by the weights of a token, and move them") {
  constexpr I kStreams = 4;
  const Model model = small("hyper_connection", {});
  const I weight = (2 + kStreams) * kStreams;
  CHECK(flops(model, "", &Operator::forward) == 2 * kTokens * weight * kStreams * kHidden);
  CHECK(flops(model, "", &Operator::backward) == 2 * 2 * kTokens * weight * kStreams * kHidden);
  CHECK(weights(model) == weight * (kStreams * kHidden + 1) + 3);
  const Model last = small("hyper_connection", {{"collapse_only", true}});
  CHECK(weights(last) == kStreams * (kStreams * kHidden + 1) + 1);
  // One vector of 16 bits: collapsed from four; mixed, four and one are read and four written.
  const auto moved = [&](std::string_view name) {
    I bytes = 0;
    for (const Operator& each : layer_operators(model, layout(1, 1, 1, 1), model.layer_kind(0)))
      if (each.name == name)
        for (const WorkItem& work : each.forward) bytes += work.kernel()->shape.bytes;
    return bytes;
  };
  CHECK(moved("hyper_collapse") == 2 * kTokens * kHidden * (kStreams + 1));
  CHECK(moved("hyper_mix") == 2 * kTokens * kHidden * (2 * kStreams + 1));
}

TEST_CASE("a recomputed layer with hyper-connections keeps all streams, whole on every rank") {
  constexpr I kStreams = 4, kState = 2 * kTokens * kHidden;
  const Model plain = small("hyper_connection", {});
  BranchOptions connected;
  connected.residual = false;
  const Model model = described(plain,
                                {{plain.architecture->blocks[0].branches[0], branch_of(plain, "mlp", {}, connected),
                                  plain.architecture->blocks[0].branches[0], branch_of(plain, "mlp", {}, connected)}},
                                {0, 0});
  const LayerKind kind = model.layer_kind(0);
  for (const I tp : {1, 2}) {
    CAPTURE(tp);
    Strategy strategy = layout(tp, 1, 1, 1);
    strategy.sequence_parallel = tp > 1;
    const auto sum = [&](I Operator::*member, const std::vector<Operator>& operators) {
      I bytes = 0;
      for (const Operator& each : operators) bytes += each.*member;
      return bytes;
    };
    std::vector<Operator> layer = layer_operators(model, strategy, kind);
    const I before = sum(&Operator::saved_bytes, layer);
    ActivationPolicy full;
    full.recompute_layer = true;
    apply_activation_policy(layer, full, rank_shapes(model, strategy, kind));
    keep_input(layer, model, strategy, kind);
    CHECK(sum(&Operator::saved_bytes, layer) == kStreams * kState);
    // All but the streams that the first product saves, of the rank's own tokens, is computed again.
    CHECK(sum(&Operator::recomputed_bytes, layer) == before - kStreams * kState / tp);
    strategy.recompute = Recompute::full;
    CHECK(memory::activation_bytes_per_layer(model, strategy, kind) == kStreams * kState);
  }
}

TEST_CASE("a contrastive head compares its samples with those of all replicas") {
  constexpr I kProjection = 64;
  const Model model = small("contrastive_head", {{"width", kProjection}});
  Strategy strategy = layout(1, 1, 8, 32);
  strategy.dp = 4;
  I pairs = 0;
  for (I own = 0; own < 8; ++own)
    for (I other = 0; other < 4 * 8; ++other) ++pairs;  // an image with each text; a text with each image as well
  CHECK(flops(model, "contrastive_loss", &Operator::forward, strategy) == 2 * 2 * kProjection * pairs);
  CHECK(flops(model, "contrastive_loss", &Operator::backward, strategy) == 2 * 2 * 2 * kProjection * pairs);
  CHECK(flops(model, "sample_projection", &Operator::forward, strategy) == 8 * 2 * kHidden * kProjection);
  CHECK(weights(model) == kHidden * kProjection + 1);
  I gathered = 0;
  for (const Operator& each : layer_operators(model, strategy, model.layer_kind(0)))
    for (const WorkItem& work : each.forward)
      if (work.start()) gathered += work.start()->bytes;
  CHECK(gathered == 2 * 2 * 32 * kProjection);  // both towers, 16 bits
  const Model tower = small("contrastive_head", {{"width", kProjection}, {"loss", false}});
  CHECK(flops(tower, "contrastive_loss", &Operator::forward, strategy) == 0);
  CHECK(weights(tower) == kHidden * kProjection);
}
