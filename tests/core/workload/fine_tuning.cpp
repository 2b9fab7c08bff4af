// Frozen weights and pairs of low rank: parameters, FLOPs, communication and saved activations against plain loops and
// closed forms.
#include "core/workload/model/fine_tuning.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model frozen(Model model) {
  model.frozen = true;
  return model;
}
Model with_pairs(Model model, std::int64_t rank, Modules weights = 0) {
  model.lora_rank = rank, model.lora_weights = weights;
  return model;
}
constexpr Modules kAttention = lora_weight::linear_qkv | lora_weight::linear_proj;
constexpr Modules kProjections = lora_weight::linear_q | lora_weight::linear_k | lora_weight::linear_v;
/// The seven matrices of a gated layer, as Hugging Face's models have them.
constexpr Modules kSeven = kProjections | lora_weight::linear_fc1_gate | lora_weight::linear_fc1_up |
                           lora_weight::linear_proj | lora_weight::linear_fc2;

Model small_llama() {
  Model model = llama(4, 64, 8, 4, 96, 256);
  model.sequence = 32;
  return model;
}

Strategy fused(std::int64_t tp, bool sequence_parallel) {
  Strategy strategy = layout(tp, 1, 2, 2);
  strategy.sequence_parallel = sequence_parallel;
  strategy.stack.attention = AttentionKernel::cudnn;
  return strategy;
}

std::int64_t flops_of(const std::vector<Operator>& operators, OpList Operator::*pass, bool of_weights) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*pass)
      if (work.kernel() && work.computes_weight_gradient() == of_weights) sum += work.kernel()->shape.flops;
  return sum;
}

using Bytes = std::map<std::pair<std::string, collective::Kind>, std::int64_t>;

/// Bytes of a layer's collectives, by operator and kind.
Bytes traffic(const std::vector<Operator>& operators, OpList Operator::*pass) {
  Bytes bytes;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*pass)
      if (const CollectiveStart* start = work.start()) bytes[{std::string(each.name), start->kind}] += start->bytes;
  return bytes;
}

std::int64_t saved(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators) sum += each.saved_bytes + each.attention_core_bytes;
  return sum;
}

/// Multiplications and additions of y = W x + B (A x) and of its gradients, counted one by one.
struct CountedPair {
  std::int64_t forward = 0, inputs = 0, weights = 0;

  CountedPair(std::int64_t tokens, std::int64_t in, std::int64_t rank, std::int64_t out) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t r = 0; r < rank; ++r)
        for (std::int64_t i = 0; i < in; ++i)
          forward += 2, inputs += 2, weights += 2;  // a_r += A_ri x_i, and gradients
      for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t r = 0; r < rank; ++r) forward += 2, inputs += 2, weights += 2;  // y_o += B_or a_r
    }
  }
};

}  // namespace

TEST_CASE("pairs of low rank have the parameters of MLPerf's benchmark, and of the layers they stand beside") {
  // Llama 2 70B with qkv_proj and o_proj, each one matrix, and rank 16 (mlcommons/training, llama2_70b_lora,
  // README.md): 80 layers of 8,192 x 10,240 and 8,192 x 8,192.
  const Model llama2_70b = llama(80, 8'192, 64, 8, 28'672, 32'000);
  CHECK(trained_parameters(with_pairs(llama2_70b, 16, kAttention)) == 44'564'480);
  CHECK(model_parameters(with_pairs(llama2_70b, 16, kAttention)) == model_parameters(llama2_70b) + 44'564'480);
  // All four: 80 x 16 x (8,192 + 10,240 + 2 x 8,192 + 8,192 + 57,344 + 28,672 + 8,192).
  CHECK(trained_parameters(with_pairs(llama2_70b, 16)) == 80LL * 16 * 137'216);
  CHECK(trained_parameters(llama2_70b) == model_parameters(llama2_70b));
  CHECK(trained_parameters(frozen(llama2_70b)) == 0);
}

TEST_CASE("ranks divide pairs of low rank without remainder, and hold frozen weights as they hold trained ones") {
  const Model plain = small_llama(), model = with_pairs(plain, 8);
  for (const std::int64_t tp : {1, 2, 4}) {
    const Strategy strategy = fused(tp, tp > 1);
    const Parameters all = stage_parameters(model, strategy, 0), trained = trained_stage_parameters(model, strategy, 0);
    CHECK(trained.dense * tp == trained_parameters(model));
    CHECK(all.dense == stage_parameters(plain, strategy, 0).dense + trained.dense);
    CHECK(trained_stage_parameters(frozen(plain), strategy, 0).dense == 0);
    CHECK(trained_stage_parameters(plain, strategy, 0).dense == stage_parameters(plain, strategy, 0).dense);
    CHECK(trained_replicated_parameters(model, strategy, {}) == 0);
    // The weight gradients of a layer are as many as its trained weights.
    std::int64_t elements = 0;
    for (const Operator& each : layer_operators(model, strategy))
      for (const WorkItem& work : each.backward)
        if (work.computes_weight_gradient()) elements += work.kernel()->shape.m * work.kernel()->shape.n;
    CHECK(elements == trained_layer_parameters(model, strategy, {}).dense);
  }
}

TEST_CASE("frozen layers have the forward pass and the gradients of inputs of trained ones, and none of weights") {
  for (const bool experts : {false, true})
    for (const std::int64_t tp : {1, 2}) {
      Model plain = small_llama();
      if (experts) plain.experts = 4, plain.experts_per_token = 2, plain.shared_ffn_hidden = 32;
      const Strategy strategy = fused(tp, tp > 1);
      const LayerKind kind = plain.layer_kind(0);
      const auto trained = layer_operators(plain, strategy, kind),
                 still = layer_operators(frozen(plain), strategy, kind);
      for (const bool of_weights : {false, true})
        CHECK(flops_of(still, &Operator::forward, of_weights) == flops_of(trained, &Operator::forward, of_weights));
      CHECK(flops_of(still, &Operator::backward, false) == flops_of(trained, &Operator::backward, false));
      CHECK(flops_of(trained, &Operator::backward, true) > 0);
      for (const Operator& each : still)
        for (const WorkItem& work : each.backward) CHECK_FALSE(work.computes_weight_gradient());
      CHECK(traffic(still, &Operator::forward) == traffic(trained, &Operator::forward));
      // The second gather of a column-parallel layer's input is for its weight gradient.
      Bytes expected = traffic(trained, &Operator::backward);
      for (const char* name : {"qkv", "mlp_up", "shared_up"}) expected.erase({name, collective::Kind::all_gather});
      CHECK(traffic(still, &Operator::backward) == expected);
    }
}

TEST_CASE("pairs of low rank take the multiplications that loops over their elements take, gradients too") {
  const Model plain = small_llama(), model = with_pairs(plain, 8);
  const std::int64_t tokens = 2 * 32;
  for (const std::int64_t tp : {1, 2, 4}) {
    const Strategy strategy = fused(tp, false);
    const auto still = layer_operators(frozen(plain), strategy), tuned = layer_operators(model, strategy);
    CountedPair counted(0, 0, 0, 0);
    for (const auto& [in, out] : {std::pair{64, 128}, {64, 64}, {64, 192}, {96, 64}}) {
      const CountedPair one(tokens, in, 8, out);
      counted.forward += one.forward, counted.inputs += one.inputs, counted.weights += one.weights;
    }
    const auto added = [&](OpList Operator::*pass, bool of_weights) {
      return tp * (flops_of(tuned, pass, of_weights) - flops_of(still, pass, of_weights));
    };
    CHECK(added(&Operator::forward, false) == counted.forward);
    CHECK(added(&Operator::backward, false) == counted.inputs);
    CHECK(added(&Operator::backward, true) == counted.weights);
  }
  // Of the whole model: the head's weights and those of the layers forward and for gradients of inputs.
  const std::int64_t s = 32, weights = 4 * 64 * (128 + 64 + 3 * 96) + 64 * 256, attention = 4 * 12 * s * s * 64;
  CHECK(model_flops_per_sequence(model) == 4 * s * weights + attention + 6 * s * trained_parameters(model));
}

TEST_CASE("each projection has a pair of its own where that is asked for, with the weights that PEFT prints") {
  // Llama 2 7B with rank 8 beside q_proj and v_proj: 2 x 32 x 8 x (4,096 + 4,096) weights, of which PEFT's
  // print_trainable_parameters() says "trainable params: 4,194,304 || all params: 6,742,609,920".
  const Model llama2_7b = llama(32, 4'096, 32, 32, 11'008, 32'000);
  CHECK(trained_parameters(with_pairs(llama2_7b, 16, lora_weight::linear_q | lora_weight::linear_v)) == 8'388'608);
  CHECK(trained_parameters(with_pairs(llama2_7b, 8, lora_weight::linear_q | lora_weight::linear_v)) == 4'194'304);
  // Llama 3 8B, rank 16, all seven: 32 x 16 x (8,192 + 2 x 5,120 + 8,192 + 3 x 18,432), "trainable params: 41,943,040".
  CHECK(trained_parameters(with_pairs(llama(32, 4'096, 32, 8, 14'336, 128'256), 16, kSeven)) == 41'943'040);

  const Model plain = small_llama(), model = with_pairs(plain, 8, kSeven);
  for (const std::int64_t tp : {1, 2, 4})
    for (const bool fusion : {false, true}) {
      Strategy strategy = fused(tp, tp == 2);
      strategy.stack.projection_fusion = fusion;
      CHECK(trained_stage_parameters(model, strategy, 0).dense * tp == trained_parameters(model));
      const auto still = layer_operators(frozen(plain), strategy), tuned = layer_operators(model, strategy);
      CountedPair counted(0, 0, 0, 0);
      for (const auto& [in, out] : {std::pair{64, 64}, {64, 32}, {64, 32}, {64, 64}, {64, 96}, {64, 96}, {96, 64}}) {
        const CountedPair one(2 * 32, in, 8, out);
        counted.forward += one.forward, counted.inputs += one.inputs, counted.weights += one.weights;
      }
      const auto added = [&](OpList Operator::*pass, bool of_weights) {
        return tp * (flops_of(tuned, pass, of_weights) - flops_of(still, pass, of_weights));
      };
      CHECK(added(&Operator::forward, false) == counted.forward);
      CHECK(added(&Operator::backward, false) == counted.inputs);
      CHECK(added(&Operator::backward, true) == counted.weights);
    }
}

TEST_CASE(
    "projections of a layer share the saved input of their pairs, and are put side by side if they are one GEMM") {
  const Model plain = llama3_70b();
  const std::int64_t sb = 4'096 * 2, h = 8'192, f = 28'672, kv = 1'024, r = 16;
  const auto bytes_of = [](const std::vector<Operator>& operators, const std::string& kernel, OpList Operator::*pass) {
    std::int64_t sum = 0;
    for (const Operator& each : operators)
      for (const WorkItem& work : each.*pass)
        if (work.kernel() != nullptr && work.kernel()->shape.name == kernel) sum += work.kernel()->shape.bytes;
    return sum;
  };
  for (const std::int64_t t : {1, 4})
    for (const bool fusion : {false, true}) {
      Strategy strategy = fused(t, t > 1);
      strategy.stack.projection_fusion = fusion;
      const auto still = layer_operators(frozen(plain), strategy),
                 tuned = layer_operators(with_pairs(plain, r, kSeven), strategy);
      // Inputs of attention and of the feed-forward network once each, that of its second layer, seven times R columns.
      CHECK(saved(tuned) - saved(still) == sb * (2 * 2 * h + 2 * f / t) + 7 * sb * 2 * r);
      const std::int64_t columns = (h + 2 * kv + 2 * f) / t;
      CHECK(bytes_of(tuned, "lora_concatenate", &Operator::forward) == (fusion ? 4 * sb * columns : 0));
      CHECK(bytes_of(tuned, "lora_add", &Operator::forward) == 6 * sb * (columns + 2 * h / t));
    }
  // What is dropped differs from pair to pair, so that each keeps its own input and mask.
  Model dropping = plain;
  dropping.dropout = true;
  const Strategy strategy = fused(1, false);
  const auto one = layer_operators(with_pairs(dropping, r, lora_weight::linear_q), strategy),
             three = layer_operators(with_pairs(dropping, r, kProjections), strategy);
  CHECK(saved(three) - saved(one) == 2 * sb * (3 * h + 2 * r));
}

TEST_CASE("pairs of low rank communicate as Megatron-Bridge's adapters do") {
  using collective::Kind;
  const Model model = with_pairs(small_llama(), 8);
  const std::int64_t tokens = 2 * 32, rank = 2 * tokens * 8, hidden = 2 * tokens * 64;
  for (const int way : {0, 1, 2}) {  // tensor parallel, sequence parallel, its gathers overlapped
    Strategy strategy = fused(4, way > 0);
    strategy.stack.overlap_tensor = way == 2;
    Bytes forward, backward;
    for (const std::string name : {"qkv", "mlp_up"}) {
      forward[{name + "_lora_a", Kind::all_gather}] = rank + (way == 2 ? hidden : 0);
      backward[{name + "_lora_b", Kind::all_reduce}] = rank;
      if (way == 0) backward[{name + "_lora_a", Kind::all_reduce}] = hidden;
      if (way == 2) backward[{name + "_lora_a", Kind::reduce_scatter}] = hidden;
    }
    for (const std::string name : {"attention_output", "mlp_down"}) {
      forward[{name + "_lora_a", Kind::all_reduce}] = rank;
      forward[{name + "_lora_b", Kind::all_gather}] = hidden;
      backward[{name + "_lora_b", Kind::all_reduce}] = rank;
      if (way > 0) backward[{name + "_lora_b", Kind::all_gather}] = hidden;
    }
    const auto of_pairs = [&](OpList Operator::*pass) {
      Bytes bytes = traffic(layer_operators(model, strategy), pass);
      std::erase_if(bytes, [](const auto& one) { return one.first.first.find("_lora_") == std::string::npos; });
      return bytes;
    };
    CAPTURE(way);
    CHECK(of_pairs(&Operator::forward) == forward);
    CHECK(of_pairs(&Operator::backward) == backward);
  }
  for (const Operator& each : layer_operators(model, fused(1, false)))
    for (const OpList* pass : {&each.forward, &each.backward})
      for (const WorkItem& work : *pass) CHECK(work.start() == nullptr);
}

TEST_CASE("frozen layers save what gradients of their inputs need, and pairs of low rank the inputs of both matrices") {
  const Model plain = llama3_70b();
  const std::int64_t sb = 4'096 * 2, h = 8'192, f = 28'672, kv = 1'024, heads = 64, r = 16;
  for (const std::int64_t t : {1, 4}) {
    const Strategy strategy = fused(t, t > 1);
    const std::int64_t attention = sb * (2 * h + 2 * 2 * kv + 4 * heads) / t;  // queries, keys, values, logarithms
    const std::int64_t inputs = sb * (2 * h + 2 * h + 2 * h + 2 * f) / t;      // of the four linear layers
    const std::int64_t norms = sb * 2 * 2 * h / t, gate = sb * 4 * f / t, output = sb * 2 * h / t;
    CHECK(saved(layer_operators(plain, strategy)) == norms + attention + gate + inputs);
    CHECK(saved(layer_operators(frozen(plain), strategy)) == norms + attention + gate + output);
    // Inputs of A are whole beside column-parallel layers; that beside the output layer is attention's output.
    const std::int64_t pairs = sb * (2 * 2 * h) + sb * 2 * f / t + 4 * sb * 2 * r;
    CHECK(saved(layer_operators(with_pairs(plain, r), strategy)) == norms + attention + gate + output + pairs);
    CHECK(saved(layer_operators(with_pairs(plain, r, lora_weight::linear_fc2), strategy)) ==
          norms + attention + gate + output + sb * 2 * f / t + sb * 2 * r);
  }
  // Unfused attention saves scores instead of its output.
  Strategy strategy = fused(1, false);
  strategy.stack.attention = AttentionKernel::unfused;
  CHECK(saved(layer_operators(plain, strategy)) - saved(layer_operators(frozen(plain), strategy)) ==
        sb * (6 * h + 2 * f));
}

TEST_CASE("replicas sum the gradients of trained weights alone, and gather frozen ones where they hold shards") {
  const Model model = with_pairs(small_llama(), 16);
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    Strategy strategy = fused(1, false);
    strategy.dp = 4, strategy.global_batch = 8, strategy.zero = zero;
    const auto bytes = bytes_by_kind(build_program(model, strategy, round_gpu(), 0), Role::data);
    const std::int64_t trained = trained_parameters(model);  // a multiple of the shards' alignment, as is a layer's
    REQUIRE(trained / 4 % (4 * 128) == 0);
    CAPTURE(zero);
    if (zero == 0) CHECK(bytes == BytesByKind{{collective::Kind::all_reduce, 4 * trained}});
    if (zero == 1 || zero == 2)
      CHECK(bytes ==
            BytesByKind{{collective::Kind::reduce_scatter, 4 * trained}, {collective::Kind::all_gather, 2 * trained}});
    if (zero < 3) continue;
    CHECK(bytes.at(collective::Kind::reduce_scatter) == 4 * trained);
    // Weights are gathered for both passes; the frozen embedding has no backward pass, and the head stays gathered.
    const std::int64_t layers = stage_parameters(model, strategy, 0).dense - 2 * 256 * 64 - 64;
    const auto padded = [](std::int64_t count) { return (count + 511) / 512 * 512; };
    CHECK(bytes.at(collective::Kind::all_gather) ==
          2 * (2 * 4 * padded(layers / 4) + padded(256 * 64) + padded(256 * 64 + 64)));
  }
}

TEST_CASE("nothing runs backward through frozen layers in front of the first that is trained") {
  const Model model = small_llama(), still = frozen(model);
  Model described_model =
      described(model,
                {{branch_of(still, "patch_embedding", {{"inputs", std::int64_t{48}}}, {BranchNorms::none, false}),
                  branch_of(still, "attention"), branch_of(still, "mlp")},
                 {branch_of(model, "linear")},
                 {branch_of(still, "attention"), branch_of(still, "mlp")}},
                {0, 0, 1, 2});
  auto architecture = std::make_shared<Architecture>(*described_model.architecture);
  architecture->embedding = false;
  described_model.architecture = architecture;
  CHECK(forward_only_layers(described_model, fused(1, false)) == 2);
  const StageWork work = stage_work(described_model, fused(1, false), round_gpu(), 0);
  const std::vector<ModelPart>& chunk = work.chunks.at(0);
  REQUIRE(chunk.size() == 6);  // an empty embedding, four layers and the head
  for (const std::size_t layer : {1, 2}) {
    CHECK_FALSE(work.of(chunk[layer]).has_backward());
    CHECK(work.of(chunk[layer]).saved_bytes == 0);
  }
  CHECK(work.of(chunk[3]).has_backward());
  CHECK(work.of(chunk[3]).trained.dense == work.of(chunk[3]).parameters.dense);
  CHECK(work.of(chunk[4]).has_backward());  // gradients pass through it to the layer that is trained
  CHECK(work.of(chunk[4]).trained.total() == 0);
  // A trained embedding, or a trained layer before them, needs gradients.
  architecture = std::make_shared<Architecture>(*architecture);
  architecture->embedding = true;
  described_model.architecture = architecture;
  CHECK(forward_only_layers(described_model, fused(1, false)) == 0);
}

TEST_CASE("every type of part that may be frozen computes no weight gradient when it is, and the same otherwise") {
  const std::set<std::string> always_trained{"sparse_attention",  "tables",     "dot_interaction",
                                             "cross_interaction", "perceptron", "convolution",
                                             "batch_norm",        "bottleneck", "conformer_convolution"};
  for (const auto& [type, own] : parts_with_options()) {
    if (always_trained.contains(type)) continue;
    CAPTURE(type);
    Model model = small_llama();
    model.experts = 8, model.sequence = 256;
    for (const auto& row : model_options().rows())
      for (const auto& [key, value] : find_part_type(type)->example_model)
        if (row.info.name == key) row.set(model, value);
    const auto layer_of = [&](const Model& part_model) {
      return described(model, {{branch_of(part_model, type, own)}}, {0});
    };
    const Model trained = layer_of(model), still = layer_of(frozen(model));
    const Strategy strategy = fused(1, false);
    const LayerKind kind = trained.layer_kind(0);
    CHECK(trained_layer_parameters(still, strategy, kind).total() == 0);
    CHECK(trained_layer_parameters(trained, strategy, kind).total() ==
          layer_parameters(trained, strategy, kind).total());
    const auto operators = layer_operators(still, strategy, kind);
    CHECK(flops_of(operators, &Operator::backward, true) == 0);
    CHECK(flops_of(operators, &Operator::forward, false) ==
          flops_of(layer_operators(trained, strategy, kind), &Operator::forward, false));
    CHECK(saved(operators) <= saved(layer_operators(trained, strategy, kind)));
  }
}
