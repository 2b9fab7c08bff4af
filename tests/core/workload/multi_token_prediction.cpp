// Layers for multi-token prediction against sums written out by hand.
#include "core/workload/model/multi_token_prediction.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model with_mtp(Model model, std::int64_t layers) {
  model.mtp_layers = layers;
  return model;
}

Model small() {
  return llama(8, 512, 8, 4, 1'536, 3'000);
}

Model small_experts() {
  Model model = small();
  model.experts = 8, model.experts_per_token = 2, model.expert_ffn_hidden = 256, model.dense_layers = 2;
  return model;
}

/// Bytes of the collectives of a kind in one direction of some operators.
std::int64_t bytes_of(const std::vector<Operator>& operators, OpList Operator::*direction, collective::Kind kind) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& item : each.*direction)
      if (const CollectiveStart* start = item.start(); start && start->kind == kind) sum += start->bytes;
  return sum;
}

std::int64_t saved_bytes(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators) sum += each.saved_bytes + each.attention_core_bytes;
  return sum;
}

std::int64_t forward_flops(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& item : each.forward)
      if (const KernelWork* kernel = item.kernel()) sum += kernel->shape.flops;
  return sum;
}

}  // namespace

TEST_CASE("a layer for multi-token prediction has the last layer's weights, a projection of 2h x h and three norms") {
  const std::int64_t h = 512;
  const std::int64_t dense = h * h + 2 * h * 256 + h * h + 3 * h * 1'536 + 2 * h;
  const std::int64_t routed = h * h + 2 * h * 256 + h * h + 8 * 3 * h * 256 + 8 * h + 2 * h;
  for (const std::int64_t layers : {1, 2, 5}) {
    CHECK(model_parameters(with_mtp(small(), layers)) - model_parameters(small()) ==
          layers * (dense + 2 * h * h + 3 * h));
    CHECK(model_parameters(with_mtp(small_experts(), layers)) - model_parameters(small_experts()) ==
          layers * (routed + 2 * h * h + 3 * h));
  }
  // A token visits two of the eight experts.
  CHECK(active_parameters(with_mtp(small_experts(), 1)) - active_parameters(small_experts()) ==
        routed - 6 * 3 * h * 256 + 2 * h * h + 3 * h);
}

TEST_CASE("the multi-token prediction of DeepSeek-V3 has the 11.6 billion parameters of its checkpoint") {
  const std::int64_t h = 7'168, heads = 128;
  const std::int64_t attention = h * 1'536 + 1'536 + 1'536 * heads * (128 + 64) + h * (512 + 64) + 512 +
                                 512 * heads * (128 + 128) + heads * 128 * h;
  const std::int64_t experts = 257 * 3 * h * 2'048 + 256 * h;
  const std::int64_t added = model_parameters(with_mtp(deepseek_v3(), 1)) - model_parameters(deepseek_v3());
  CHECK(added == attention + experts + 2 * h + 2 * h * h + 3 * h);
  CHECK(added == 11'610'068'224 - 256);  // docs/facts/architectures.md, without the correction bias of each expert
  // Hugging Face counts 685 B: with it, and with its own copies of the token table and the output layer.
  CHECK(static_cast<double>(model_parameters(deepseek_v3()) + added + 2 * 129'280 * h) ==
        Approx(684.5e9).epsilon(1e-4));
}

TEST_CASE("multi-token prediction costs the FLOPs of its layer, its projection and one more output layer") {
  for (const Model& model : {small(), small_experts(), deepseek_v3()}) {
    Model longer = model;
    ++longer.layers;
    const std::int64_t layer = model_flops_per_sequence(longer) - model_flops_per_sequence(model);
    const std::int64_t s = model.sequence, h = model.hidden;
    for (const std::int64_t layers : {1, 3})
      CHECK(model_flops_per_sequence(with_mtp(model, layers)) - model_flops_per_sequence(model) ==
            layers * (layer + 6 * s * 2 * h * h + 6 * s * h * model.vocabulary));
  }
}

TEST_CASE("ranks together hold every parameter of multi-token prediction once, and a copy of the table") {
  for (const Model& plain : {small(), small_experts()})
    for (const bool tied : {false, true})
      for (const std::int64_t pp : {1, 2, 4}) {
        Model model = with_mtp(plain, 2);
        model.tied_embeddings = tied;
        model.vocabulary = 3'072;
        std::int64_t held = 0;
        for (std::int64_t stage = 0; stage < pp; ++stage)
          held += stage_parameters(model, layout(1, pp, 1, 8), stage).total();
        CAPTURE(tied, pp);
        CHECK(held == model_parameters(model) + (pp > 1 ? 3'072 * 512 : 0));
        Strategy folded = layout(1, pp, 1, 8, pp > 1 ? 2 : 1);
        if (pp == 1) continue;
        folded.schedule = schedule_by_name("zb_v");  // the first and the last stage are on one rank
        held = 0;
        for (std::int64_t stage = 0; stage < pp; ++stage) held += stage_parameters(model, folded, stage).total();
        CHECK(held == model_parameters(model));
      }
}

TEST_CASE("the parts of a stage have the parameters of the stage") {
  for (const bool tied : {false, true})
    for (const std::int64_t tp : {1, 2})
      for (const std::int64_t pp : {1, 2, 4})
        for (std::int64_t stage = 0; stage < pp; ++stage) {
          Model model = with_mtp(small_experts(), 2);
          model.tied_embeddings = tied;
          Strategy strategy = layout(tp, pp, 1, 8);
          strategy.sequence_parallel = tp > 1;
          const StageWork work = stage_work_without_costs(model, strategy, stage);
          std::int64_t sum = 0;
          for (const auto& chunk : work.chunks)
            for (const ModelPart part : chunk) sum += work.of(part).parameters.total();
          CHECK(sum == stage_parameters(model, strategy, stage).total());
        }
}

TEST_CASE("first and last stage add up the gradient of the table that they share") {
  const auto bytes = [](bool tied, std::int64_t mtp, std::int64_t pp, std::int64_t stage) {
    Model model = with_mtp(small(), mtp);
    model.tied_embeddings = tied;
    const Program program = build_program(model, layout(4, pp, 1, 4), round_gpu(), stage);
    return bytes_by_kind(program, Role::embedding)[collective::Kind::all_reduce];
  };
  const std::int64_t table = 4 * (3'072 / 4) * 512;  // 3000 padded to a multiple of 128 x 4
  for (const bool tied : {false, true}) {
    CHECK(bytes(tied, 1, 4, 0) == table);
    CHECK(bytes(tied, 1, 4, 3) == table);
    CHECK(bytes(tied, 1, 4, 2) == 0);
    CHECK(bytes(tied, 1, 1, 0) == 0);
    CHECK(bytes(tied, 0, 4, 3) == (tied ? table : 0));
  }
}

TEST_CASE("under tensor parallelism each rank projects to its columns, and all gather those of the others") {
  const Model model = with_mtp(small(), 1);
  const std::int64_t all = 2 * model.sequence * model.hidden;  // bytes of a micro-batch's hidden states
  for (const bool sequence_parallel : {false, true}) {
    Strategy strategy = layout(4, 1, 1, 8);
    strategy.sequence_parallel = sequence_parallel;
    const auto layer = layer_operators(model, strategy, mtp_kind(model));
    const auto inner = layer_operators(model, strategy, model.layer_kind(7));
    using collective::Kind;
    const auto more = [&](OpList Operator::*direction, Kind kind) {
      return bytes_of(layer, direction, kind) - bytes_of(inner, direction, kind);
    };
    CAPTURE(sequence_parallel);
    if (sequence_parallel) {
      // The look-up ends in a reduce-scatter; the projection gathers its input, twice as wide, and its output.
      CHECK(more(&Operator::forward, Kind::reduce_scatter) == all);
      CHECK(more(&Operator::forward, Kind::all_gather) == 2 * all + all);
      CHECK(more(&Operator::forward, Kind::all_reduce) == 0);
      // Backward the look-up gathers its gradient, the projection that of its output and its input again.
      CHECK(more(&Operator::backward, Kind::all_gather) == all + all + 2 * all);
      CHECK(more(&Operator::backward, Kind::reduce_scatter) == 2 * all);
    } else {
      CHECK(more(&Operator::forward, Kind::all_reduce) == all);
      CHECK(more(&Operator::forward, Kind::all_gather) == all);
      CHECK(more(&Operator::backward, Kind::all_reduce) == 2 * all);
      CHECK(more(&Operator::backward, Kind::all_gather) == 0);
    }
    CHECK(forward_flops(layer) - forward_flops(inner) == 2 * model.sequence * 2 * 512 * 512 / 4);
  }
}

TEST_CASE("a recomputed layer for multi-token prediction saves both of its inputs, where all layers are recomputed") {
  const Model model = with_mtp(small(), 1);
  Strategy strategy = layout(1, 1, 1, 8);
  const LayerKind kind = mtp_kind(model);
  const auto saved = [&](std::int64_t recompute_layers) {
    strategy.recompute = Recompute::full, strategy.recompute_layers = recompute_layers;
    auto operators = layer_operators(model, strategy, kind);
    const ActivationPolicy policy = activation_policy(strategy, 0, 0, model.layers, kind);
    apply_activation_policy(operators, policy, rank_shapes(model, strategy, kind));
    // The look-up is not repeated, all else is.
    const auto repeated = std::count_if(operators.begin(), operators.end(),
                                        [](const Operator& each) { return each.recompute_before != kNotRecomputed; });
    CHECK(repeated == (recompute_layers == 0 ? std::ssize(operators) - 1 : 0));
    return saved_bytes(operators);
  };
  const std::int64_t states = 2 * model.sequence * model.hidden;
  CHECK(saved(0) == 2 * states);
  strategy.recompute = Recompute::none;
  const std::int64_t all = saved_bytes(layer_operators(model, strategy, kind));
  CHECK(saved(1) == all);  // of the first layers alone (Megatron-LM's block method)
  CHECK(saved(100) == all);
  // Inputs of the two norms, of the projection, twice as wide, and of the norm behind the layer.
  CHECK(all == saved_bytes(layer_operators(model, strategy, model.layer_kind(7))) + 5 * states);
}

TEST_CASE("the last stage holds the weights, states and logits of multi-token prediction, and no other stage does") {
  const std::int64_t h = 512, tokens = 4'096, vocabulary = 3'072;
  const Model plain = small(), model = with_mtp(small(), 1);
  Strategy strategy = layout(1, 4, 1, 8);
  strategy.stack.attention = AttentionKernel::flash2;  // without scores the peak is at the loss
  for (const std::int64_t stage : {0, 1, 2}) {
    const auto before = memory::footprint(plain, strategy, round_gpu(), stage);
    const auto after = memory::footprint(model, strategy, round_gpu(), stage);
    CHECK(before.total() == after.total());
  }
  const auto before = memory::footprint(plain, strategy, round_gpu(), 3);
  const auto after = memory::footprint(model, strategy, round_gpu(), 3);
  const std::int64_t layer = h * h + 2 * h * 256 + h * h + 3 * h * 1'536 + 2 * h;
  const std::int64_t added = layer + 2 * h * h + 3 * h + vocabulary * h;  // and a copy of the table
  CHECK(after.weights - before.weights == 2 * added);
  CHECK(after.gradients - before.gradients == 4 * added);
  CHECK(after.optimizer - before.optimizer == 12 * added);
  CHECK(after.logits - before.logits == 4 * tokens * vocabulary);
  // One micro-batch is in flight: what the layer saves, and one more input of the output layer.
  const auto policy = activation_policy(strategy, 3, 0, 2, mtp_kind(model));
  const auto saved = memory::layer_bytes(model, strategy, {mtp_kind(model), policy, 0}).saved.bytes;
  CHECK(after.activations - before.activations == saved + 2 * tokens * h);
}

TEST_CASE("losses of multi-token prediction come before that of the model, behind all layers") {
  const Model model = with_mtp(small(), 2);
  std::vector<std::string> names;
  for (const Operator& each : head_operators(model, layout(1, 1, 1, 8))) names.emplace_back(each.name);
  CHECK(names == std::vector<std::string>{"final_norm", "mtp_states", "vocabulary", "cross_entropy", "vocabulary",
                                          "cross_entropy", "vocabulary", "cross_entropy"});
  const StageWork last = stage_work_without_costs(model, layout(1, 4, 1, 8), 3);
  REQUIRE(last.chunks.at(0).size() == 1 + 2 + 2 + 1);  // the table's copy, layers, those that predict, head
  CHECK(last.of(last.chunks[0].front()).parameters.dense == 3'072 * 512);
  CHECK(last.chunks[0][3] == last.chunks[0][4]);
  CHECK(stage_work_without_costs(model, layout(1, 4, 1, 8), 0).chunks.at(0).size() == 1 + 2);
}

TEST_CASE("the last block of an architecture is repeated as the last layer of a transformer is") {
  const Model plain = with_mtp(small(), 2);
  const Model block =
      described(plain, {{branch_of(plain, "attention"), branch_of(plain, "mlp")}}, std::vector<std::uint32_t>(8, 0));
  CHECK(model_parameters(block) == model_parameters(plain));
  CHECK(model_flops_per_sequence(block) == model_flops_per_sequence(plain));
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    Strategy strategy = layout(2, 4, 1, 8);
    strategy.sequence_parallel = true;
    strategy.recompute = recompute;
    for (const std::int64_t stage : {0, 3}) {
      CHECK(memory::footprint(block, strategy, round_gpu(), stage).total() ==
            memory::footprint(plain, strategy, round_gpu(), stage).total());
      const StageWork one = stage_work_without_costs(block, strategy, stage),
                      other = stage_work_without_costs(plain, strategy, stage);
      CHECK(one.replicated_parameters == other.replicated_parameters);
      REQUIRE(one.parts.size() == other.parts.size());
      for (std::size_t part = 0; part < one.parts.size(); ++part) {
        CHECK(one.parts[part].saved_bytes == other.parts[part].saved_bytes);
        CHECK(one.parts[part].parameters.total() == other.parts[part].parameters.total());
      }
    }
  }
}
