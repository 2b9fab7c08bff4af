// Recomputed modules: what each no longer saves and runs again, by a table written plainly beside it; and recomputation
// of some layers and stages only.
#include "core/workload/activations/activation_policy.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

/// Bytes that a recomputed module does not save, and the operators whose forward pass runs again for it.
struct Given {
  std::int64_t bytes = 0;
  std::set<std::string> recompute;
};

std::map<std::string, Given> table_of(const Model& model, const Strategy& strategy, LayerKind kind) {
  const RankShapes rank = rank_shapes(model, strategy, kind);
  const bool gated = model.activation == Activation::swiglu;
  const std::string function = gated ? "swiglu" : "gelu";
  const std::int64_t in_function = gated ? 2 : 1;  // its inputs, in widths of its result
  std::map<std::string, Given> table;
  table["core_attn"] = {0, {"attention"}};
  // Both norms' results: 2 sbh each, cut along the sequence under sequence parallelism.
  table["layernorm"] = {2 * 2 * rank.sp_region_tokens * model.hidden, {"attention_norm", "mlp_norm"}};
  if (model.is_latent())
    table["mla_up_proj"] = {
        2 * rank.sp_region_tokens * (model.query_rank + model.kv_rank) + 2 * rank.tokens * rank.qkv_width(),
        {"query_norm", "query_up", "key_value_norm", "key_value_up", "rotary"}};
  if (kind.experts) {
    const std::int64_t rows = rank_load(model, strategy, expert_load(model, strategy, kind), 0).computed;
    table["moe_act"] = {2 * rows * rank.expert_ffn, {}};
    table["shared_experts"] = {2 * rank.tokens * rank.shared_ffn * (in_function + 1), {}};
    table["moe"] = {8 * rank.sp_region_tokens * model.experts + 2 * rows * model.hidden +
                        2 * rows * rank.expert_ffn * (in_function + 1) + table["shared_experts"].bytes,
                    {}};
  } else {
    table["mlp_act"] = {2 * rank.tokens * rank.ffn, {function}};
    table["mlp"] = {2 * rank.tokens * rank.ffn * (in_function + 1), {"mlp_up", function, "mlp_down"}};
  }
  return table;
}

Modules module_named(const std::string& name) {
  const auto& names = recompute_module_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return Modules{1} << i;
  FAIL(name);
  return 0;
}

memory::LayerBytes bytes_of(const Model& model, const Strategy& strategy, LayerKind kind) {
  return memory::layer_bytes(model, strategy, {kind, activation_policy(strategy, 0, 0, 0), 0});
}

struct ModelCase {
  Model model;
  Strategy strategy;
};
std::vector<ModelCase> configurations() {
  Strategy dense = layout(4, 1, 2, 2);
  dense.sequence_parallel = true;
  dense.stack.attention = AttentionKernel::cudnn;
  Strategy experts = dense;
  experts.dp = 8, experts.global_batch = 16, experts.ep = 8;
  return {{gpt3_175b(), dense}, {llama3_70b(), dense}, {deepseek_v3(), experts}, {mixtral_8x7b(), experts}};
}

}  // namespace

TEST_CASE("each recomputed module saves so much less, and its forward kernels run again once") {
  std::size_t seen = 0;
  for (const auto& [model, strategy] : configurations())
    for (const LayerKind kind : {model.layer_kind(0), model.layer_kind(model.layers - 1)}) {
      const auto before = bytes_of(model, strategy, kind);
      for (const auto& [name, given] : table_of(model, strategy, kind)) {
        CAPTURE(model.hidden, kind.experts, name);
        Strategy less = strategy;
        less.recompute_modules = module_named(name);
        const auto after = bytes_of(model, less, kind);
        CHECK(before.saved.bytes - after.saved.bytes == given.bytes);
        CHECK(after.recomputed <= given.bytes);
        CHECK((after.recomputed > 0) == (given.bytes > 0));
        CHECK(after.working == before.working);
        if (given.recompute.empty()) continue;
        auto operators = layer_operators(model, less, kind);
        std::multiset<std::string> forward, recompute;
        for (const Operator& each : operators)
          for (const WorkItem& work : each.forward)
            if (work.kernel() && given.recompute.count(std::string(each.name)))
              forward.insert(std::string(work.kernel()->shape.name));
        apply_activation_policy(operators, activation_policy(less, 0, 0, 0), rank_shapes(model, less));
        for (const Phase& phase : backward_pass(operators))
          for (const WorkItem& work : phase.ops)
            if (phase.category == StepPart::recompute && work.kernel())
              recompute.insert(std::string(work.kernel()->shape.name));
        CHECK(recompute == forward);
        ++seen;
      }
    }
  CHECK(seen == 2 * 4 + 2 * 4 + 5 + 3 + 2 * 2);  // of GPT, Llama, DeepSeek's dense and its other layers, Mixtral
}

TEST_CASE("wherever tokens are copied, neither those that leave nor those that return are saved") {
  const ModelCase configuration = configurations()[2];
  Strategy late = configuration.strategy;
  late.stack.dispatcher = Dispatcher::hybrid_ep;
  const LayerKind kind{true};
  CHECK(bytes_of(configuration.model, configuration.strategy, kind).saved.bytes ==
        bytes_of(configuration.model, late, kind).saved.bytes);
  Strategy narrow = late;
  narrow.stack.precision = Precision::fp8;
  const std::int64_t rows =
      rank_load(configuration.model, late, expert_load(configuration.model, late, kind), 0).computed;
  const auto of_experts = [&](const Strategy& strategy) {
    std::int64_t sum = 0;
    for (const Operator& each : layer_operators(configuration.model, strategy, kind))
      if (each.name == "expert_up" || each.name == "expert_down") sum += each.saved_bytes;
    return sum;
  };
  CHECK(of_experts(late) == 2 * rows * (configuration.model.hidden + configuration.model.expert_ffn_hidden));
  CHECK(2 * of_experts(narrow) == of_experts(late));
}

TEST_CASE("recomputed norms save 4 sbh/t less and a recomputed GELU 8 sbh/t less of Korthikanti's 34") {
  for (const Model& model : {megatron_22b(), gpt3_175b(), megatron_530b(), megatron_1t()})
    for (const std::int64_t t : {2, 8}) {
      Strategy strategy = layout(t, 1, 4, 4);
      strategy.sequence_parallel = true;
      strategy.recompute = Recompute::selective;
      const std::int64_t sbh = 2'048 * 4 * model.hidden;
      const auto saved = [&](Modules modules) {
        strategy.recompute_modules = modules;
        return memory::activation_bytes_per_layer(model, strategy);
      };
      CHECK(saved(0) == 34 * sbh / t);
      CHECK(saved(recompute::layernorm) == 30 * sbh / t);
      CHECK(saved(recompute::mlp_act) == 26 * sbh / t);
      CHECK(saved(recompute::layernorm | recompute::mlp_act) == 22 * sbh / t);
      CHECK(saved(recompute::mlp) == (34 - 16) * sbh / t);
    }
}

TEST_CASE("levels of modules save less and less, and take longer and longer") {
  const Modules one = recompute::layernorm | recompute::moe_act | recompute::mlp_act;
  const Modules two = one | recompute::shared_experts | recompute::mlp | recompute::mla_up_proj;
  for (auto [model, strategy] : configurations()) {
    if (!model.is_latent()) continue;  // it has them all
    model.layers = 4;
    std::int64_t memory = std::numeric_limits<std::int64_t>::max();
    Time time = -1;
    for (const Modules level : {Modules{0}, one, two, two | recompute::moe}) {
      strategy.recompute_modules = level;
      const std::int64_t bytes = memory::peak(model, strategy, {}).total();
      const Time result = kernel_time(build_program(model, strategy, round_gpu(), 0), StepPart::recompute);
      CAPTURE(model.hidden, level);
      CHECK(bytes < memory);
      CHECK(result > time);
      memory = bytes, time = result;
    }
    strategy.recompute_modules = 0;
    strategy.recompute = Recompute::full;
    CHECK(memory::peak(model, strategy, {}).activations < memory);
    CHECK(kernel_time(build_program(model, strategy, round_gpu(), 0), StepPart::recompute) > time);
  }
}

TEST_CASE("a compiler leaves out of recomputation the projection whose result no backward pass reads") {
  for (const Model& model : {gpt3_175b(), llama3_70b()})
    for (const bool full : {false, true}) {
      Strategy strategy = configurations().front().strategy;
      if (full)
        strategy.recompute = Recompute::full;
      else
        strategy.recompute_modules = recompute::mlp;
      const auto run_again = [&] {
        std::multiset<std::string> names;
        auto operators = layer_operators(model, strategy, {});
        apply_activation_policy(operators, activation_policy(strategy, 0, 0, 0), rank_shapes(model, strategy));
        for (const Operator& each : operators)
          if (each.recompute_before != kNotRecomputed) names.insert(std::string(each.name));
        return names;
      };
      const auto bytes = bytes_of(model, strategy, {}).saved.bytes;
      auto all = run_again();
      strategy.stack.recompute_unused = false;
      CHECK(all.erase("mlp_down") == 1);
      CHECK(all.erase("mlp_residual") == (full ? 1 : 0));
      CHECK(run_again() == all);
      CHECK(bytes_of(model, strategy, {}).saved.bytes == bytes);
    }
}

TEST_CASE("what is inside a larger module runs again once, with it") {
  const ModelCase configuration = configurations()[2];
  for (const auto& [outer, inner] : {std::pair{recompute::moe, recompute::moe_act | recompute::shared_experts},
                                     {recompute::mlp, recompute::mlp_act}}) {
    Strategy one = configuration.strategy, both = configuration.strategy;
    one.recompute_modules = outer;
    both.recompute_modules = outer | inner;
    for (const LayerKind kind : {LayerKind{}, LayerKind{true}}) {
      const auto a = bytes_of(configuration.model, one, kind), b = bytes_of(configuration.model, both, kind);
      CHECK((kind.experts == (outer == recompute::moe) ? a.saved.bytes == b.saved.bytes
                                                       : a.saved.bytes >= b.saved.bytes));
    }
    Model model = configuration.model;
    model.layers = 2, model.dense_layers = outer == recompute::mlp ? 2 : 0;
    CHECK(kernel_time(build_program(model, one, round_gpu(), 0), StepPart::recompute) ==
          kernel_time(build_program(model, both, round_gpu(), 0), StepPart::recompute));
  }
}

TEST_CASE("the first layers of each chunk, or the first stages, are recomputed, and no others") {
  const Model model = gpt3_175b();
  for (const Modules modules : {Modules{0}, recompute::layernorm | recompute::mlp_act}) {
    Strategy strategy = layout(8, 4, 1, 16, 2);
    strategy.sequence_parallel = true;
    if (modules == 0) strategy.recompute = Recompute::full;
    strategy.recompute_modules = modules;
    const auto again_on = [&](const Strategy& given, std::int64_t stage) {
      return kernel_time(build_program(model, given, round_gpu(), stage), StepPart::recompute);
    };
    const Time whole = again_on(strategy, 1);
    REQUIRE(whole > 0);
    Strategy some = strategy;
    some.recompute_layers = 3;  // of 12 in each chunk
    CHECK(again_on(some, 1) * 4 == whole);
    some = strategy;
    some.recompute_stages = 2;
    for (const std::int64_t stage : {0, 1, 2, 3}) CHECK(again_on(some, stage) == (stage < 2 ? whole : 0));
    CHECK(memory::footprint(model, some, {}, 1).total() == memory::footprint(model, strategy, {}, 1).total());
    Strategy none = strategy;
    none.recompute = Recompute::none, none.recompute_modules = 0;
    CHECK(memory::footprint(model, some, {}, 2).total() == memory::footprint(model, none, {}, 2).total());
  }
}

TEST_CASE("op by op, attention and every other GEMM are saved, and below 16 bits attention alone") {
  const Model model = llama3_70b();
  const std::int64_t h = model.hidden, kv = model.kv() * model.key_width(), ffn = model.ffn();
  for (const std::int64_t t : {1, 8})
    for (const Precision precision : {Precision::bf16, Precision::fp8}) {
      Strategy strategy = layout(t, 1, 2, 2);
      strategy.sequence_parallel = t > 1;
      strategy.stack.attention = AttentionKernel::flash2;
      strategy.stack.precision = precision;
      strategy.recompute = Recompute::per_op;
      const RankShapes shapes = rank_shapes(model, strategy);
      const std::int64_t tokens = shapes.tokens;
      const bool narrow = precision == Precision::fp8;
      // The layer's input, query, value and gate, and attention's output, which fp8 GEMMs read in 8 bits.
      const std::int64_t attention_output = (narrow ? 1 : 2) * tokens * h / t;
      const std::int64_t gemm_outputs = narrow ? 0 : 2 * tokens * (h + kv + ffn) / t;
      CAPTURE(t, narrow);
      CHECK(bytes_of(model, strategy, {}).saved.bytes ==
            2 * tokens * h / t + gemm_outputs + attention_output + 4 * tokens * model.heads / t);
      std::vector<Operator> layer = layer_operators(model, strategy);
      apply_activation_policy(layer, activation_policy(strategy, 0, 0, 0), shapes);
      std::int64_t flops = 0;
      for (const Operator& each : layer)
        if (each.recompute_before != kNotRecomputed)
          for (const WorkItem& work : each.recompute_pass()) {
            REQUIRE(work.kernel() != nullptr);
            flops += work.kernel()->shape.flops;
          }
      // Keys, the output where it is not summed over ranks, and up; below 16 bits query, value and gate, too.
      const std::int64_t columns = kv + (narrow ? h + kv + ffn : 0) + ffn, output = t == 1 ? h : 0;
      CHECK(flops == 2 * tokens * h * (columns / t + output));
    }
}
