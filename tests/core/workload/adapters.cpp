// Frozen weights in 4 bits, and norms trained beside pairs of low rank: bytes, kernels, parameters and traffic against
// closed forms.
#include <catch2/catch.hpp>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/weights/four_bit_weights.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model with_pairs(Model model, std::int64_t rank) {
  model.lora_rank = rank;
  return model;
}
Model in_four_bits(Model model) {
  model.frozen_weights = WeightFormat::nf4;
  return model;
}
Model with_magnitudes(Model model) {
  model.lora_magnitudes = true;
  return model;
}

constexpr std::int64_t kRank = 16, kHidden = 512, kFfn = 1'024, kKeys = 256, kTokens = 2 * 128;

/// A layer has 512 x (512 + 2 x 256), 512 x 512, 512 x 2,048 and 1,024 x 512 weights.
Model small_llama() {
  Model model = llama(4, kHidden, 8, 4, kFfn, 2'048);
  model.sequence = 128;
  return model;
}

Strategy fused(std::int64_t tp, bool sequence_parallel = false) {
  Strategy strategy = layout(tp, 1, 2, 2);
  strategy.sequence_parallel = sequence_parallel;
  strategy.stack.attention = AttentionKernel::cudnn;
  return strategy;
}

/// Sums over the kernels of a layer in one direction, of one name or of all.
struct Sums {
  std::int64_t kernels = 0, bytes = 0, flops = 0;
};

Sums sums_of(const Model& model, const Strategy& strategy, OpList Operator::*pass, std::string_view begin = "") {
  Sums sums;
  for (const Operator& each : layer_operators(model, strategy))
    for (const WorkItem& work : each.*pass)
      if (const KernelWork* kernel = work.kernel(); kernel != nullptr && kernel->shape.name.starts_with(begin))
        ++sums.kernels, sums.bytes += kernel->shape.bytes, sums.flops += kernel->shape.flops;
  return sums;
}

std::int64_t saved(const Model& model, const Strategy& strategy) {
  return memory::layer_bytes(model, strategy, {{}, {}, 0}).saved.bytes;
}

}  // namespace

TEST_CASE("weights in 4 bits take 4.127 bits each: constants of 8 bits by 64, and of 32 by 64 x 256") {
  const std::int64_t weights = 4'096 * 11'008;
  CHECK(8 * four_bit_bytes(weights) == 4 * weights + 8 * weights / 64 + 32 * weights / (64 * 256));
  // Dettmers et al. 2023, section 3: 8 / 64 + 32 / (64 x 256) = 0.127 bits beyond the four.
  CHECK(8.0 * static_cast<double>(four_bit_bytes(weights)) / static_cast<double>(weights) ==
        Approx(4.127).margin(5e-4));
  CHECK(four_bit_bytes(1) == 1 + 1 + 4);
}

TEST_CASE("every GEMM by a weight in 4 bits has it written in 16 bits first, forward and backward") {
  const Model plain = with_pairs(small_llama(), kRank), four = in_four_bits(plain);
  const Strategy strategy = fused(1);
  const std::int64_t weights = kHidden * (kHidden + 2 * kKeys) + kHidden * kHidden + 3 * kHidden * kFfn,
                     constants = weights / 64;
  for (OpList Operator::*const pass : {&Operator::forward, &Operator::backward}) {
    const Sums all = sums_of(four, strategy, pass), without = sums_of(plain, strategy, pass);
    CHECK(all.flops == without.flops);
    CHECK(all.kernels == without.kernels + 4 * 3);
    // To fp32: a byte each, and four in 256; four written. An offset: read and written. Weights: 4 bits and their
    // constants, 16 written.
    const std::int64_t bytes =
        (constants + 4 * constants / 256 + 4 * constants) + 8 * constants + (weights / 2 + 4 * constants + 2 * weights);
    CHECK(sums_of(four, strategy, pass, "dequantise").bytes == bytes);
    CHECK(all.bytes == without.bytes + bytes);
  }
  CHECK(saved(four, strategy) == saved(plain, strategy));
  CHECK(four_bit_weights(layer_operators(four, strategy)).count == weights);
  CHECK(four_bit_weights(layer_operators(plain, strategy)).count == 0);
  const auto working = [&](const Model& model) { return memory::layer_bytes(model, strategy, {{}, {}, 0}).working; };
  CHECK(working(four) == working(plain) + 2 * 2 * kHidden * kFfn);  // gate and up in 16 bits
}

TEST_CASE("a rank keeps linear layers in 4 bits, and embedding, norms, head and pairs in 16") {
  // LLaMA 7B: Touvron et al. 2023, table 2.
  const Model plain = with_pairs(llama(32, 4'096, 32, 32, 11'008, 32'000), 64);
  const Strategy strategy = fused(1);
  const std::int64_t linear = 32LL * (4 * 4'096 * 4'096 + 3 * 4'096 * 11'008);
  const auto bytes = [&](const Model& model) {
    return memory::static_footprint(model, strategy, round_gpu(), RankClass{0});
  };
  const auto four = bytes(in_four_bits(plain)), sixteen = bytes(plain);
  CHECK(sixteen.weights - four.weights == 2 * linear - (linear / 2 + linear / 64 + linear / 4'096));
  CHECK(four.weights ==
        2 * (stage_parameters(plain, strategy, 0).total() - linear) + linear / 2 + linear / 64 + linear / 4'096);
  CHECK(four.gradients == sixteen.gradients);
  CHECK(four.optimizer == sixteen.optimizer);
  CHECK(trained_parameters(in_four_bits(plain)) == trained_parameters(plain));
}

TEST_CASE("65 billion weights in 4 bits are trained on 48 GB, which in 16 bits they exceed") {
  // Dettmers et al. 2023, abstract; sizes of Touvron et al. 2023, table 2; a text of 512 tokens, layers recomputed.
  Model model = with_pairs(llama(80, 8'192, 64, 64, 22'016, 32'000), 16);
  model.sequence = 512;
  Strategy strategy = layout(1, 1, 1, 16);
  strategy.stack.attention = AttentionKernel::flash2;
  strategy.recompute = Recompute::full;
  const auto allocated = [&](const Model& one) { return memory::peak(one, strategy, round_gpu()).allocated(); };
  CHECK(allocated(in_four_bits(model)) < 48'000'000'000);
  CHECK(allocated(model) > 2 * 65'000'000'000);
}

TEST_CASE("one norm is trained for each output of a layer with a pair") {
  const Model pairs = with_pairs(small_llama(), kRank), model = with_magnitudes(pairs);
  const std::int64_t outputs = (kHidden + 2 * kKeys) + kHidden + 2 * kFfn + kHidden;
  CHECK(trained_parameters(model) == trained_parameters(pairs) + 4 * outputs);
  CHECK(model_parameters(model) == model_parameters(pairs) + 4 * outputs);
  Model attention = model, plain_attention = pairs;
  for (Model* one : {&attention, &plain_attention}) one->lora_weights = lora_weight::linear_qkv;
  CHECK(trained_parameters(attention) == trained_parameters(plain_attention) + 4 * (kHidden + 2 * kKeys));
  CHECK(trained_parameters(with_magnitudes(small_llama())) == trained_parameters(small_llama()));
  // Outputs of column-parallel layers are shared out; those of row-parallel layers are on every rank.
  for (const std::int64_t tp : {1, 2, 4}) {
    const Parameters more = trained_layer_parameters(model, fused(tp), {}),
                     less = trained_layer_parameters(pairs, fused(tp), {});
    CHECK(more.dense == less.dense + (kHidden + 2 * kKeys + 2 * kFfn) / tp + 2 * kHidden);
    CHECK(trained_replicated_parameters(model, fused(tp), {}) == 2 * kHidden);
  }
}

TEST_CASE("norms of weights are computed in every forward pass, and get no gradient") {
  const Model pairs = with_pairs(small_llama(), kRank), model = with_magnitudes(pairs);
  for (const std::int64_t tp : {1, 2}) {
    const Strategy strategy = fused(tp);
    CAPTURE(tp);
    const std::int64_t weights = (kHidden * (kHidden + 2 * kKeys) + kHidden * kHidden + 3 * kHidden * kFfn) / tp;
    const Sums forward = sums_of(model, strategy, &Operator::forward),
               plain = sums_of(pairs, strategy, &Operator::forward);
    CHECK(forward.flops == plain.flops + 2 * kRank * weights);  // the product of each pair
    CHECK(sums_of(model, strategy, &Operator::backward).flops == sums_of(pairs, strategy, &Operator::backward).flops);
    CHECK(sums_of(model, strategy, &Operator::forward, "magnitude_sum").bytes == 6 * weights);
    const std::int64_t rows = (kHidden + 2 * kKeys + 2 * kFfn) / tp + 2 * kHidden;
    CHECK(sums_of(model, strategy, &Operator::forward, "magnitude_norm").bytes == 2 * weights + 2 * rows);
    // The scaled outputs are saved as they were before.
    const std::int64_t outputs = kTokens * rows;
    CHECK(saved(model, strategy) == saved(pairs, strategy) + 2 * outputs);
    CHECK(sums_of(model, strategy, &Operator::forward, "magnitude_scale").bytes == 4 * outputs);
    CHECK(sums_of(model, strategy, &Operator::backward, "magnitude_scale").bytes == 4 * outputs);
    CHECK(sums_of(model, strategy, &Operator::backward, "magnitude_gradient").bytes == (6 + 2) * outputs + 16 * rows);
  }
}

TEST_CASE("a rank gathers the factor of a pair that it has a share of, for the norm") {
  const Model pairs = with_pairs(small_llama(), kRank), model = with_magnitudes(pairs);
  const auto gathered = [](const Model& one, bool sequence_parallel) {
    std::int64_t bytes = 0;
    for (const Operator& each : layer_operators(one, fused(2, sequence_parallel)))
      for (const WorkItem& work : each.forward)
        if (const CollectiveStart* start = work.start();
            start != nullptr && start->kind == collective::Kind::all_gather)
          bytes += start->bytes;
    return bytes;
  };
  for (const bool sequence_parallel : {false, true})
    CHECK(gathered(model, sequence_parallel) ==
          gathered(pairs, sequence_parallel) + 2 * kRank * (kHidden + kHidden + kHidden + kHidden));
}

TEST_CASE("a norm needs the product and the sum in 16 bits, which few tokens do not exceed") {
  Model model = with_magnitudes(with_pairs(small_llama(), kRank));
  model.sequence = 1;
  const auto layer = memory::layer_bytes(model, layout(1, 1, 1, 1), {{}, {}, 0});
  CHECK(layer.working == 4 * 2 * kHidden * kFfn);
}
