// Programs, kernels and memory of ranks whose experts get unequal loads.
#include <catch2/catch.hpp>
#include <cmath>

#include <numeric>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core::workload;
namespace compute = manyworlds::core::compute;
namespace collective = manyworlds::core::collective;
namespace memory = manyworlds::core::memory;
using manyworlds::core::Time;

namespace {

/// 16 experts over 8 ranks, in the last 2 of 3 layers; 2,048 tokens visit 4 of them each.
Model model_of(double exponent) {
  Model model = llama(3, 512, 8, 4, 1'024, 3'000);
  model.sequence = 2'048;
  model.experts = 16;
  model.experts_per_token = 4;
  model.expert_ffn_hidden = 768;
  model.dense_layers = 1;
  model.routing = zipf_routing(3, 16, exponent, 4);
  return model;
}

Strategy eight_ranks() {
  Strategy strategy = layout(1, 1, 1, 16);
  strategy.dp = strategy.ep = 8;
  return strategy;
}

RankLoad load_of(const Model& model, const Strategy& strategy, std::int64_t layer, std::int64_t rank) {
  const ExpertLoad load = expert_load(model, strategy, model.layer_kind(layer));
  return rank_load(model, strategy, load, rank);
}

Time time_of(const Operator& each, bool forward) {
  Time sum = 0;
  for (const WorkItem& work : forward ? each.forward : each.backward)
    if (const KernelWork* kernel = work.kernel()) sum += compute::modelled_time(kernel->shape, round_gpu());
  return sum;
}

const KernelWork& first_kernel(const Operator& each) {
  return std::get<KernelWork>(each.forward.front().action);
}

const Operator& named(const std::vector<Operator>& operators, std::string_view name) {
  for (const Operator& each : operators)
    if (each.name == name) return each;
  FAIL("no operator " << name);
  return operators.front();
}

std::int64_t up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

TEST_CASE("a grouped GEMM of unequal experts takes the waves of all their tiles") {
  const compute::Gpu gpu = round_gpu();  // 100 units, 200 TFLOP/s in the main loop, no prologue, 2 us launch
  const std::vector<std::int64_t> tokens{1, 127, 128, 129, 0, 5'000, 64};
  const std::int64_t n = 1'536, k = 512;
  const auto bytes = static_cast<double>(2 * (5'449 * k + 6 * k * n + 5'449 * n));  // 1 ps a byte
  double best = 1e300;
  for (const auto& [height, width] :
       {std::pair{256, 128}, {128, 256}, {128, 192}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}) {
    std::int64_t tiles = 0;
    for (const std::int64_t each : tokens) tiles += up(each, height) * up(n, width);
    const double ps = static_cast<double>(up(tiles, 100) * 2 * height * width * k) / 2;
    best = std::min(best, std::pow(std::pow(ps, 4) + std::pow(bytes, 4), 0.25));
  }
  compute::Kernel kernel = compute::grouped_gemm("expert_up", std::span(tokens), n, k, compute::Dtype::bf16);
  CHECK(kernel.one_by_one);
  kernel.one_by_one = false;  // one launch of all tiles
  CHECK(kernel.flops == 2 * 5'449 * n * k);
  CHECK(kernel.batch == 6);
  CHECK(kernel.bytes == 2 * (5'449 * k + 6 * k * n + 5'449 * n));
  CHECK(static_cast<double>(compute::modelled_time(kernel, gpu)) == Approx(best + 2e6));
  // 128-row tiles alone: ceil(sum of ceil(n_e / 128) x ceil(f / 128) / units) waves, as MXMACA's rule has it.
  CHECK(kernel.expert_tokens.tiles_of(128) == 1 + 1 + 1 + 2 + 0 + 40 + 1);

  compute::Kernel gradient =
      compute::grouped_weight_gradient("expert_up", n, k, std::span(tokens), compute::Dtype::bf16);
  CHECK(gradient.flops == kernel.flops);
  CHECK(gradient.bytes == 2 * 5'449 * (n + k) + 8 * 6 * n * k);
  gradient.one_by_one = false;
  CHECK(compute::modelled_time(gradient, gpu) > 2 * 64 * 64 * 5'000 / 2);  // a tile of the largest expert alone
}

TEST_CASE("GEMMs of experts run one by one, each with a launch") {
  const compute::Gpu gpu = round_gpu();
  const Time one = compute::modelled_time(compute::gemm("x", 512, 1'536, 512), gpu);
  const compute::Kernel eight = compute::grouped_gemm("x", 512, 1'536, 512, 8, compute::Dtype::bf16);
  CHECK(static_cast<double>(compute::modelled_time(eight, gpu)) == Approx(8 * static_cast<double>(one)));
}

TEST_CASE("equal experts are the even kernel, whichever way they are told, and empty ones are not launched") {
  const std::vector<std::int64_t> equal(5, 300), some{300, 0, 300, 0, 0};
  using compute::Dtype;
  CHECK(compute::grouped_gemm("x", std::span(equal), 64, 32, Dtype::fp8) ==
        compute::grouped_gemm("x", 300, 64, 32, 5, Dtype::fp8));
  CHECK(compute::grouped_gemm("x", std::span(some), 64, 32, Dtype::fp8) ==
        compute::grouped_gemm("x", 300, 64, 32, 2, Dtype::fp8));
  CHECK(compute::grouped_weight_gradient("x", 64, 32, std::span(some), Dtype::bf16) ==
        compute::grouped_weight_gradient("x", 64, 32, 300, 2, Dtype::bf16));
}

TEST_CASE("every rank sends by destination on the way out and by source on the way back, as its peers expect") {
  const Model model = model_of(1);
  const Strategy strategy = eight_ranks();
  std::vector<Program> programs;
  for (std::int64_t rank = 0; rank < 8; ++rank)
    programs.push_back(build_program(model, strategy, round_gpu(), {0, rank}));
  std::size_t exchanges = 0;
  for (const Program& program : programs) {
    std::vector<std::pair<std::int64_t, collective::Split>> own, first;
    for (const auto& [from, to] : {std::pair{&program, &own}, {&programs.front(), &first}})
      for (const Op& op : from->ops)
        if (const CollectiveCall* call = call_of(op, Role::expert))
          to->emplace_back(call->bytes, from->split_of(*call));
    CHECK(own == first);
    exchanges = own.size();
  }
  CHECK(exchanges == 2 * 2 * 4);  // micro-batches, layers, dispatch and combine forward and backward
  for (const std::int64_t layer : {1, 2}) {
    const auto operators = layer_operators(model, strategy, model.layer_kind(layer), 5);
    const RankLoad load = load_of(model, strategy, layer, 5);
    for (const auto& [name, forward, by_source] : {std::tuple{"dispatch", true, false},
                                                   {"dispatch", false, true},
                                                   {"combine", true, true},
                                                   {"combine", false, false}}) {
      const Operator& travel = named(operators, name);
      const CollectiveStart& start = *(forward ? travel.forward : travel.backward).front().start();
      CHECK(start.bytes == 2 * 512 * 4 * 2'048);
      CHECK(start.split.by_source == by_source);
      REQUIRE(start.split.bytes.size() == 8);
      for (std::size_t rank = 0; rank < 8; ++rank)
        CHECK(start.split.bytes[rank] == 2 * 512 * load.to_ranks.bytes[rank]);
    }
  }
}

TEST_CASE("ranks whose experts get more than the limit compute them again, and no others") {
  const Model model = model_of(1.2);
  Strategy strategy = eight_ranks();
  const Strategy never = strategy;
  strategy.expert_recompute_tokens = 9'000;  // of 8,192 in the mean
  std::size_t over = 0;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    Time expected = 0;
    std::int64_t total_saved = 0;
    for (const std::int64_t layer : {1, 2}) {
      const RankLoad load = load_of(model, strategy, layer, rank);
      const LayerKind kind = model.layer_kind(layer);
      const memory::LayerKey at{kind, activation_policy(strategy, 0, 0, 0), rank};
      const auto saved = memory::layer_bytes(model, never, at), less = memory::layer_bytes(model, strategy, at);
      if (load.computed <= 9'000) {
        CHECK(less.saved.bytes == saved.saved.bytes);
        CHECK(less.recomputed == 0);
        continue;
      }
      ++over;
      const auto operators = layer_operators(model, never, kind, rank);
      for (const char* name : {"expert_up", "swiglu", "expert_down"}) expected += time_of(named(operators, name), true);
      // Gate and up, and their product: 3 x 768 values of 2 B for each row.
      CHECK(saved.saved.bytes - less.saved.bytes == 2 * 3 * 768 * load.computed);
      CHECK(less.recomputed == 2 * 3 * 768 * load.computed);
      total_saved += saved.saved.bytes - less.saved.bytes;
    }
    const Program with = build_program(model, strategy, round_gpu(), {0, rank});
    const Program without = build_program(model, never, round_gpu(), {0, rank});
    CHECK(kernel_time(with, StepPart::recompute) == 2 * expected);  // two micro-batches
    CHECK(kernel_time(without, StepPart::recompute) == 0);
    CHECK(kernel_time(with, StepPart::forward) == kernel_time(without, StepPart::forward));
    CHECK(kernel_time(with, StepPart::backward) == kernel_time(without, StepPart::backward));
    const auto more = memory::footprint(model, never, {}, {0, rank}),
               lean = memory::footprint(model, strategy, {}, {0, rank});
    CHECK(more.activations - lean.activations == total_saved);
  }
  CHECK(over > 2);
  CHECK(over < 10);
  CHECK(memory::peak(model, strategy, {}).total() < memory::peak(model, never, {}).total());
}

TEST_CASE("with selective recomputation of attention a loaded rank computes both again, each before its backward") {
  const Model model = model_of(1.2);
  Strategy strategy = eight_ranks();
  strategy.recompute = Recompute::selective;
  const auto recomputed = [&](std::int64_t rank) {
    return kernel_time(build_program(model, strategy, round_gpu(), {0, rank}), StepPart::recompute);
  };
  std::vector<Time> core;
  for (std::int64_t rank = 0; rank < 8; ++rank) core.push_back(recomputed(rank));
  strategy.expert_recompute_tokens = 1;  // every rank
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    CHECK(core[static_cast<std::size_t>(rank)] == core[0]);
    CHECK(recomputed(rank) > core[static_cast<std::size_t>(rank)]);
  }
  Strategy full = strategy;
  full.recompute = Recompute::full, strategy.expert_recompute_tokens = 0;
  auto experts = layer_operators(model, full, model.layer_kind(1), 0);
  apply_activation_policy(experts, activation_policy(full, 0, 0, 0), rank_shapes(model, full));
  CHECK(backward_pass(experts).size() == 2);  // all of it once, and no part of it a second time
}

TEST_CASE("a copied expert is sent to everybody and its gradient back, and takes the memory of both") {
  const Model model = model_of(1.4);
  Strategy strategy = eight_ranks();
  const Strategy without = strategy;
  strategy.hot_experts = true;
  strategy.hot_expert_tflops = 20, strategy.hot_expert_gbps = 400;
  const std::int64_t parameters = 3 * 512 * 768;
  std::size_t copies = 0;
  for (const std::int64_t layer : {1, 2}) {
    const LayerKind kind = model.layer_kind(layer);
    const ExpertLoad load = expert_load(model, strategy, kind);
    const auto count = static_cast<std::int64_t>(load.copied.size());
    REQUIRE(count > 0);
    copies += load.copied.size();
    const auto operators = layer_operators(model, strategy, kind, 3);
    const Operator& shared = named(operators, "hot_experts");
    for (std::size_t i = 0; i < load.copied.size(); ++i) {
      const auto owner = static_cast<std::size_t>(load.copied[i] / 2);
      const CollectiveStart &forward = *shared.forward[i].start(), &backward = *shared.backward[i].start();
      CHECK(forward.kind == collective::Kind::broadcast);
      CHECK(forward.bytes == 2 * parameters);
      CHECK(forward.split.bytes[owner] == 2 * parameters);
      CHECK(backward.kind == collective::Kind::reduce);
      CHECK(backward.bytes == 4 * parameters);
      CHECK(backward.split.bytes[owner] == 4 * parameters);
    }
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const memory::LayerKey at{kind, {}, rank};
      const auto with = memory::layer_bytes(model, strategy, at), before = memory::layer_bytes(model, without, at);
      const RankLoad now = load_of(model, strategy, layer, rank), was = load_of(model, without, layer, rank);
      // A row that is computed elsewhere: its input, gate, up and their product.
      CHECK(with.saved.bytes - before.saved.bytes ==
            count * 2 * parameters + 2 * (512 + 3 * 768) * (now.computed - was.computed));
      const auto working = [&](std::int64_t rows, std::int64_t copied) {
        return std::max(2 * 3 * 768 * rows + copied * 4 * parameters,
                        2 * memory::shared_buffer_bytes(model, strategy)) +
               rank_shapes(model, strategy).hidden_bytes();
      };
      CHECK(with.working == working(now.computed, count));
      CHECK(before.working == working(was.computed, 0));
    }
  }
  CHECK(copies < 2 * 15);
}

TEST_CASE("padded to capacity all ranks are alike, and a batched GEMM is launched once for all experts") {
  Model model = model_of(1);
  Strategy strategy = eight_ranks();
  strategy.capacity_factor = 1.25;
  strategy.pad_to_capacity = true;
  CHECK(rank_classes(model, strategy).size() == 1);
  const LayerKind kind = model.layer_kind(1);
  const std::int64_t capacity = 640;  // 1.25 x 2,048 x 4 / 16
  const auto grouped = layer_operators(model, strategy, kind);
  strategy.expert_gemm = ExpertGemm::batched;
  const auto batched = layer_operators(model, strategy, kind);
  for (const char* name : {"expert_up", "expert_down"}) {
    const KernelWork &one = first_kernel(named(batched, name)), &many = first_kernel(named(grouped, name));
    CHECK(one.shape == many.shape);
    CHECK(one.shape.m == 8 * capacity);
    CHECK(one.shape.batch == 2);
    CHECK(one.launches == 1);
    CHECK(many.launches == 2);
  }
  CHECK(named(batched, "dispatch").forward.front().start()->bytes == 2 * 512 * 16 * capacity);
  CHECK(named(batched, "dispatch").forward.front().start()->split.even());
  // The same whatever the router does; the loss differs, not the time.
  model.routing = nullptr;
  CHECK(first_kernel(named(layer_operators(model, strategy, model.layer_kind(1)), "expert_up")).shape ==
        first_kernel(named(batched, "expert_up")).shape);
}

TEST_CASE("choosing the tokens to drop takes a pass over the scores, by position one more") {
  const Model model = model_of(1);
  Strategy strategy = eight_ranks();
  strategy.capacity_factor = 1;
  const auto bytes = [&](TokenDrop policy) {
    strategy.token_drop = policy;
    return first_kernel(named(layer_operators(model, strategy, model.layer_kind(1)), "capacity")).shape.bytes;
  };
  CHECK(bytes(TokenDrop::probs) == 25 * 2'048 * 16);
  CHECK(bytes(TokenDrop::position) == 30 * 2'048 * 16);
}
