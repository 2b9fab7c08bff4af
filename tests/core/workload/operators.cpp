// FLOPs and tensor-parallel traffic against the closed forms of Narayanan et al. 2021 and Korthikanti et al. 2022.
#include "core/workload/layer/operators.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "core/workload/build/build_program.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

/// FLOPs of one step over all ranks.
double step_flops(const Model& model, const Strategy& strategy) {
  double sum = 0;
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage)
    for (const KernelUse& use : kernels_used(model, strategy, round_gpu(), stage))
      sum += static_cast<double>(use.kernel.flops) * static_cast<double>(use.times * strategy.tp * strategy.dp);
  return sum;
}

/// Bytes of a layer's tensor-parallel collectives in one direction, by kind.
std::map<collective::Kind, std::int64_t> traffic(const Model& model, const Strategy& strategy, bool forward) {
  std::map<collective::Kind, std::int64_t> bytes;
  for (const Operator& each : layer_operators(model, strategy))
    for (const WorkItem& work : forward ? each.forward : each.backward)
      if (const CollectiveStart* start = work.start()) bytes[start->kind] += start->bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a step of a GPT model takes the FLOPs of Narayanan's formula") {
  const Model model = gpt3_175b();
  const auto l = static_cast<double>(model.layers), h = static_cast<double>(model.hidden);
  const double s = 2'048, v = 51'200, samples = 32;
  const double without = 72 * samples * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  const double with = 96 * samples * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  for (Strategy strategy : {layout(1, 1, 1, 32), layout(8, 8, 2, 32), layout(8, 8, 1, 32, 3)}) {
    CAPTURE(strategy.tp, strategy.pp, strategy.virtual_stages);
    CHECK(step_flops(model, strategy) == Approx(without).epsilon(1e-12));
    strategy.recompute = Recompute::full;
    CHECK(step_flops(model, strategy) == Approx(with).epsilon(1e-12));
    strategy.recompute = Recompute::selective;  // the scores and values again: 4 b s^2 h a layer
    CHECK(step_flops(model, strategy) == Approx(without + 4 * samples * s * s * h * l).epsilon(1e-12));
    strategy.sequence_parallel = strategy.tp > 1;
    strategy.dp = 2;
    strategy.recompute = Recompute::none;
    CHECK(step_flops(model, strategy) == Approx(without).epsilon(1e-12));
  }
  CHECK(static_cast<double>(model_flops_per_sequence(model)) == Approx(without / samples).epsilon(1e-12));
}

TEST_CASE("a Llama model takes six FLOPs per weight and token, and attention's") {
  const Model model = llama3_70b();
  const double s = 4'096, h = 8'192, l = 80;
  const double layers = 6 * s * l * (2 * h * h + 2 * h * 1'024 + 3 * h * 28'672) + 12 * l * s * s * h;
  CHECK(static_cast<double>(model_flops_per_sequence(model)) == Approx(layers + 6 * s * h * 128'256).epsilon(1e-12));
  // What ranks run includes the padding of the vocabulary to a multiple of 128 x 8.
  CHECK(step_flops(model, layout(8, 4, 1, 4)) == Approx(4 * (layers + 6 * s * h * 129'024)).epsilon(1e-12));
}

TEST_CASE("tensor parallelism costs four all-reduces of the hidden states a layer") {
  using collective::Kind;
  for (const Model& model : {gpt3_175b(), llama3_70b()}) {
    const std::int64_t hidden_states = 2 * 3 * model.sequence * model.hidden;  // bf16, micro-batch of 3
    Strategy strategy = layout(8, 1, 3, 3);
    using Bytes = std::map<Kind, std::int64_t>;
    CHECK(traffic(model, strategy, true) == Bytes{{Kind::all_reduce, 2 * hidden_states}});
    CHECK(traffic(model, strategy, false) == Bytes{{Kind::all_reduce, 2 * hidden_states}});
    strategy.sequence_parallel = true;  // and the inputs are gathered once more in the backward pass
    CHECK(traffic(model, strategy, true) ==
          Bytes{{Kind::all_gather, 2 * hidden_states}, {Kind::reduce_scatter, 2 * hidden_states}});
    CHECK(traffic(model, strategy, false) ==
          Bytes{{Kind::all_gather, 4 * hidden_states}, {Kind::reduce_scatter, 2 * hidden_states}});
    strategy.tp = 1;
    CHECK(traffic(model, strategy, true).empty());
    CHECK(traffic(model, strategy, false).empty());
  }
}

TEST_CASE("the unfused attention core moves 9 bytes a score forward and 11 backward besides its GEMMs") {
  const Strategy strategy = layout(4, 1, 2, 2);
  std::int64_t forward = 0, backward = 0;
  const auto memory_bound_bytes = [](const OpList& ops) {
    std::int64_t sum = 0;
    for (const WorkItem& work : ops)
      if (const KernelWork* kernel = work.kernel(); kernel && kernel->shape.flops == 0) sum += kernel->shape.bytes;
    return sum;
  };
  for (const Operator& each : layer_operators(gpt3_175b(), strategy)) {
    if ((each.in_modules & recompute::core_attn) == 0) continue;
    forward += memory_bound_bytes(each.forward);
    backward += memory_bound_bytes(each.backward);
  }
  const std::int64_t scores = 2LL * 96 / 4 * 2'048 * 2'048;  // softmax r2 w2, dropout r2 w2 and a mask byte
  CHECK(forward == 9 * scores);
  CHECK(backward == 11 * scores);
}
