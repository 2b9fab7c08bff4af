// Parts of diffusion transformers: their FLOPs against plain loops, their weights, and what modulation moves and saves.
#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/operator_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

constexpr I kSamples = 2, kTokens = 40, kText = 16, kHidden = 32, kHeads = 4, kKeyHeads = 2, kWidth = 16, kFfn = 48;

/// A model with shared key heads, and heads that are wider than the stream has room for, so that no two sizes are
/// alike.
Model uneven_model(bool gated) {
  Model model = llama(1, kHidden, kHeads, kKeyHeads, kFfn, 128);
  model.sequence = kTokens, model.head_dim = kWidth;
  model.activation = gated ? Activation::swiglu : Activation::gelu;
  model.norm = Norm::layer_norm;
  model.biases = model.query_key_norm = true;
  return model;
}

std::vector<Operator> operators_of(const Model& model, const std::string& type, const OptionSet& own,
                                   const BranchOptions& options = {BranchNorms::none, false}) {
  const Model listed = described(model, {{branch_of(model, type, own, options)}}, {0});
  Strategy strategy = layout(1, 1, 1, kSamples);
  strategy.micro_batch = kSamples;
  strategy.stack.attention = AttentionKernel::unfused;
  return layer_operators(listed, strategy, listed.layer_kind(0));
}

/// Counts the multiplications and additions of a network's loops, one by one, and those of its gradients: each product
/// of a forward pass is one of two factors, both of which have a gradient, unless one is data.
struct Loops {
  I forward = 0, backward = 0;

  /// A matrix times the vector of each row.
  void multiply(I rows, I in, I out, bool input_has_gradient = true) {
    for (I row = 0; row < rows; ++row)
      for (I to = 0; to < out; ++to)
        for (I from = 0; from < in; ++from) forward += 2, backward += input_has_gradient ? 4 : 2;
  }
  /// Every token's queries times the keys of all tokens, and their weights times all values.
  void attend(I tokens) {
    for (I sample = 0; sample < kSamples; ++sample)
      for (I head = 0; head < kHeads; ++head)
        for (I query = 0; query < tokens; ++query)
          for (I key = 0; key < tokens; ++key)
            for (I i = 0; i < kWidth; ++i) forward += 2 + 2, backward += 4 + 4;
  }
};

void check(const std::vector<Operator>& operators, const Loops& loops) {
  CHECK(flops_of(operators, &Operator::forward) == loops.forward);
  CHECK(flops_of(operators, &Operator::backward) == loops.backward);
}

constexpr I kQkv = (kHeads + 2 * kKeyHeads) * kWidth, kValues = kHeads * kWidth;

}  // namespace

TEST_CASE("joint attention takes the FLOPs of its loops over both streams") {
  Loops loops;
  for (const I tokens : {kTokens - kText, kText}) {
    loops.multiply(kSamples * tokens, kHidden, kQkv);
    loops.multiply(kSamples * tokens, kValues, kHidden);
  }
  loops.attend(kTokens);
  check(operators_of(uneven_model(false), "joint_attention", {{"text", kText}}), loops);
}

TEST_CASE("feed-forward networks of two streams take the FLOPs of their loops") {
  for (const bool gated : {false, true}) {
    Loops loops;
    for (const I tokens : {kTokens - kText, kText}) {
      loops.multiply(kSamples * tokens, kHidden, gated ? 2 * kFfn : kFfn);
      loops.multiply(kSamples * tokens, kFfn, kHidden);
    }
    check(operators_of(uneven_model(gated), "joint_mlp", {{"text", kText}}), loops);
  }
}

TEST_CASE("attention beside a feed-forward network takes the FLOPs of its loops, with joined matrices or without") {
  for (const bool gated : {false, true})
    for (const bool joined : {false, true}) {
      Loops loops;
      loops.multiply(kSamples * kTokens, kHidden, kQkv + (gated ? 2 * kFfn : kFfn));
      loops.attend(kTokens);
      loops.multiply(kSamples * kTokens, kValues + kFfn, kHidden);
      CAPTURE(gated, joined);
      check(operators_of(uneven_model(gated), "parallel_block", {{"joined", joined}}), loops);
    }
}

TEST_CASE("vectors of samples take the FLOPs of their loops over samples, not tokens") {
  const Model model = uneven_model(false);
  Loops conditioning;
  for (const I width : {8, 24, 40}) {
    conditioning.multiply(kSamples, width, kHidden, false);
    conditioning.multiply(kSamples, kHidden, kHidden);
  }
  conditioning.multiply(kSamples, kHidden, 6 * kHidden);
  check(operators_of(model, "conditioning",
                     {{"time", I{8}}, {"guidance", I{24}}, {"pooled", I{40}}, {"shared_vectors", I{6}}}),
        conditioning);
  Loops modulation;
  modulation.multiply(kSamples, kHidden, 3 * kHidden);
  check(operators_of(model, "modulation", {{"vectors", I{3}}}), modulation);
  check(operators_of(model, "modulation", {{"vectors", I{3}}, {"table", true}}), {});
  Loops head;
  head.multiply(kSamples, kHidden, 2 * kHidden);
  head.multiply(kSamples * kTokens, kHidden, 12);
  check(operators_of(model, "denoising_head", {{"outputs", I{12}}}), head);
}

TEST_CASE("two streams have the weights of two layers, and a parallel block those of one") {
  const auto parameters = [](const std::string& type, const OptionSet& own) {
    const Model model = uneven_model(false);
    const Model listed = described(model, {{branch_of(model, type, own, {BranchNorms::none, false})}}, {0});
    return layer_parameters(listed, layout(1, 1, 1, 1), listed.layer_kind(0)).total();
  };
  const I attention = parameters("attention", {}), mlp = parameters("mlp", {});
  CHECK(parameters("joint_attention", {{"text", kText}}) == 2 * attention);
  CHECK(parameters("joint_mlp", {{"text", kText}}) == 2 * mlp);
  // One bias of the output instead of two.
  CHECK(parameters("parallel_block", {}) == attention + mlp - kHidden);
  CHECK(parameters("parallel_block", {{"joined", false}}) == attention + mlp - kHidden);
  // Tables of classes are read and not multiplied.
  CHECK(parameters("conditioning", {{"time", I{8}}, {"classes", I{10}}}) ==
        8 * kHidden + kHidden + kHidden * kHidden + kHidden + 10 * kHidden);
  CHECK(parameters("modulation", {{"vectors", I{6}}, {"table", true}}) == 6 * kHidden);
  CHECK(parameters("denoising_head", {{"outputs", I{12}}, {"table", true}}) == 2 * kHidden + 12 * (kHidden + 1));
}

TEST_CASE("a modulated norm has no weights, and scale, shift and gate are kernels around the part") {
  const Model model = uneven_model(false);
  const BranchOptions modulated{BranchNorms::modulated, true};
  const Model listed = described(model, {{branch_of(model, "mlp", {}, modulated)}}, {0});
  const Model bare = described(model, {{branch_of(model, "mlp", {}, {BranchNorms::none, true})}}, {0});
  CHECK(model_parameters(listed) == model_parameters(bare));
  Strategy strategy = layout(1, 1, 1, kSamples);
  strategy.micro_batch = kSamples;
  const auto names = [&] {
    std::vector<std::string> all;
    for (const Operator& each : layer_operators(listed, strategy, listed.layer_kind(0))) all.emplace_back(each.name);
    return all;
  };
  const auto saved = [&] { return memory::activation_bytes_per_layer(listed, strategy, listed.layer_kind(0)); };
  using Names = std::vector<std::string>;
  const I elements = kSamples * kTokens * kHidden, wide = kSamples * kTokens * kFfn;
  CHECK(names() == Names{"mlp_norm", "mlp_up", "gelu", "mlp_down", "mlp_residual"});
  // Saved are, in 16 bits, the inputs of the norm, of both matrices, of GELU and of the gate.
  CHECK(saved() == 2 * (3 * elements + 2 * wide));
  strategy.recompute_modules = recompute::layernorm;  // what the norm writes is computed again
  CHECK(saved() == 2 * (2 * elements + 2 * wide));
  strategy.stack.norm_fusion = false;  // kernel by kernel, the input of the scale as well
  CHECK(names() == Names{"mlp_norm", "modulate", "mlp_up", "gelu", "mlp_down", "mlp_residual"});
  CHECK(saved() == 2 * (2 * elements + 2 * wide));
  strategy.recompute_modules = 0;
  CHECK(saved() == 2 * (4 * elements + 2 * wide));
}

TEST_CASE("ranks of tensor parallelism gather the vectors of modulation, of which each has its share") {
  const Model model = uneven_model(false);
  const Model listed = described(model, {{branch_of(model, "modulation", {{"vectors", I{6}}})}}, {0});
  Strategy strategy = layout(4, 1, 1, kSamples);
  strategy.micro_batch = kSamples;
  I gathered = 0, reduced = 0;
  for (const Operator& each : layer_operators(listed, strategy, listed.layer_kind(0))) {
    for (const WorkItem& work : each.forward)
      if (work.start() && work.start()->kind == collective::Kind::all_gather) gathered += work.start()->bytes;
    for (const WorkItem& work : each.backward)
      if (work.start() && work.start()->kind == collective::Kind::all_reduce) reduced += work.start()->bytes;
  }
  CHECK(gathered == 2 * kSamples * 6 * kHidden);
  CHECK(reduced == 2 * kSamples * kHidden);
}

TEST_CASE("context-parallel ranks share the queries of cross attention to a text that all of them have") {
  const Model model = uneven_model(false);
  const Model listed =
      described(model, {{branch_of(model, "cross_attention", {{"keys", kText}, {"whole", true}})}}, {0});
  CHECK(listed.architecture->blocks[0].branches[0].part->shares_context());
  Strategy strategy = layout(1, 1, 1, kSamples);
  strategy.micro_batch = kSamples, strategy.cp = 4;
  strategy.stack.attention = AttentionKernel::unfused;
  Loops loops;  // of one rank
  const I queries = kTokens / 4;
  loops.multiply(kSamples * queries, kHidden, kValues);
  loops.multiply(kSamples * kText, kHidden, 2 * kKeyHeads * kWidth);
  loops.multiply(kSamples * kHeads * queries, kWidth, kText);
  loops.multiply(kSamples * kHeads * queries, kText, kWidth);
  loops.multiply(kSamples * queries, kValues, kHidden);
  const std::vector<Operator> layer = layer_operators(listed, strategy, listed.layer_kind(0));
  check(layer, loops);
  for (const Operator& each : layer)
    for (const WorkItem& work : each.forward) CHECK_FALSE(work.start());
}

TEST_CASE("a stream of text must leave tokens to the image") {
  Model model = uneven_model(false);
  const auto missing = [&](I text) {
    return find_part_type("joint_attention")->make({{"text", text}})->missing_size(model);
  };
  CHECK(missing(kText).empty());
  CHECK(missing(kTokens) == "sequence > text");
  model.heads = 0;
  CHECK(missing(kText) == "heads");
}
