// Activations in the host's memory: what travels, what waits for it, and what it takes of the GPU's memory, against
// recurrences of two copy engines written plainly here.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "core/memory/footprint.hpp"
#include "core/stream/timeline.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/host_traffic.hpp"
#include "tests/core/step/step_configurations.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;
using namespace manyworlds::tests;

namespace {

constexpr Modules kDense = offload::attn_norm | offload::qkv_linear | offload::core_attn | offload::attn_proj |
                           offload::mlp_norm | offload::mlp_fc1 | offload::mlp_act | offload::mlp_fc2;

Model small_gpt(std::int64_t layers) {
  Model model = gpt(layers, 1'024, 16, 512);
  model.sequence = 1'024;
  return model;
}

/// The bytes of a layer that go to the host.
std::int64_t away_of(const Model& model, const Strategy& strategy) {
  auto operators = layer_operators(model, strategy);
  const ActivationPolicy policy = activation_policy(strategy, 0, 0, 0);
  apply_activation_policy(operators, policy, rank_shapes(model, strategy));
  return offloaded_bytes(operators, policy);
}

struct Played {
  Time lasts = 0, waited = 0;
};
Played play(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  const std::vector<Program> programs{build_program(model, strategy, gpu, 0)};
  stream::Timeline timeline(programs, {0});
  std::vector<stream::Entry> entries;
  timeline.begin(entries);
  while (timeline.next_end() != kNever) timeline.advance(timeline.next_end(), entries);
  REQUIRE(timeline.finished());
  timeline.close_accounts();
  return {timeline.end(), timeline.accounts()[0][StepPart::exposed_offload]};
}

/// One micro-batch through `layers` layers on one GPU: forward F, backward B, a copy X one way; the embedding takes E
/// before, the head H between, and what comes behind is `tail`. The last layer stays. A layer runs forward when of
/// those before it one at most is leaving; it is called back when the one after it runs backward.
Time oracle(std::int64_t layers, Time e, Time f, Time h, Time b, Time tail, Time x) {
  std::map<std::int64_t, Time> left;
  Time now = e, engine = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    if (i >= 2) now = std::max(now, left[i - 2]);
    now += f;
    if (i + 1 < layers) left[i] = engine = std::max(now, engine) + x;
  }
  now += h;
  Time back = 0;
  for (std::int64_t i = layers - 1; i >= 0; --i) {
    if (i + 1 < layers) now = std::max(now, back);
    if (i > 0) back = std::max({now, back, left[i - 1]}) + x;
    now += b;
  }
  return now + tail;
}

}  // namespace

TEST_CASE("a pass waits for copies exactly where two engines that keep one layer ahead make it") {
  const Model model = small_gpt(6);
  const Strategy none = layout(1, 1, 1, 1);
  compute::Gpu gpu = round_gpu();
  const StageWork work = stage_work(model, none, gpu, 0);
  const auto lasts = [&](const PhaseList& pass) {
    Time sum = 0;
    for (const Phase& phase : pass)
      for (const WorkItem& one : phase.ops)
        if (const KernelWork* kernel = one.kernel()) sum += kernel->cost.ps;
    return sum;
  };
  const auto part = [&](std::size_t place) -> const PartWork& { return work.of(work.chunks[0][place]); };
  const Time f = lasts(part(1).forward), b = lasts(part(1).backward);
  const Time without = play(model, none, gpu).lasts;
  const Time e = lasts(part(0).forward), h = lasts(part(7).forward) + lasts(part(7).backward);
  std::set<int> cases;
  for (const Modules modules : {kDense, Modules{offload::mlp_act}, offload::mlp_act | offload::mlp_fc2})
    for (const double rate : {1.0, 10.0, 40.0, 80.0, 160.0, 10'000.0}) {
      Strategy strategy = none;
      strategy.offload_modules = modules;
      gpu.host_gb_per_s = rate;
      const Time x = serialization_ps(away_of(model, strategy), static_cast<std::int64_t>(rate * 8e9));
      CAPTURE(modules, rate, f, b, x);
      const Played with = play(model, strategy, gpu);
      CHECK(with.lasts == oracle(6, e, f, h, b, without - 6 * (f + b) - e - h, x));
      CHECK(with.waited == with.lasts - without);
      if (x <= std::min(f, b)) CHECK(with.lasts == without);
      cases.insert(x <= f ? 0 : x <= b ? 1 : 2);
    }
  CHECK(cases == std::set<int>{0, 1, 2});
}

TEST_CASE("what leaves comes back, once, and what is needed next stays") {
  for (const char* schedule : {"1f1b", "gpipe", "interleaved", "zb_h1", "v_half"}) {
    const Model model = small_gpt(16);
    Strategy strategy = layout(1, 4, 1, 8);
    strategy.schedule = schedule_by_name(schedule);
    strategy.virtual_stages = std::string_view(schedule) == "interleaved" || schedule[0] == 'v' ? 2 : 1;
    strategy.offload_modules = kDense;
    strategy.offload_layers = 3;
    const std::int64_t layers = std::min<std::int64_t>(3, 4 / strategy.virtual_stages) * strategy.virtual_stages;
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      CAPTURE(schedule, stage);
      const Program program = build_program(model, strategy, round_gpu(), stage);
      std::int64_t offload = 0, back = 0;
      for (const Op& op : program.ops) {
        offload += op.stream == Stream::offload, back += op.stream == Stream::reload;
        if (op.stream == Stream::reload) CHECK(back <= offload);
      }
      CHECK(offload == back);
      CHECK(offload <= layers * 8);
      CHECK(offload >= layers * 8 - 8);  // of a micro-batch at most its last layer stays
    }
  }
}

TEST_CASE("offloaded activations are in the GPU's memory as far as they are on their way") {
  const Model model = gpt3_175b();
  for (const Modules modules : {kDense, Modules{offload::mlp_act | offload::mlp_fc2}}) {
    Strategy strategy = layout(8, 8, 1, 64);
    strategy.sequence_parallel = true;
    strategy.stack.attention = AttentionKernel::cudnn;
    const auto whole = memory::footprint(model, strategy, {}, 0);
    strategy.offload_modules = modules;
    const auto less = memory::footprint(model, strategy, {}, 0);
    CHECK(whole.activations - less.activations == (8 * 12 - kMaxOffloadingLayers) * away_of(model, strategy));
    strategy.offload_stages = 2;
    CHECK(memory::footprint(model, strategy, {}, 1).activations <
          memory::footprint(model, strategy, {}, 2).activations);
  }
}

TEST_CASE("composed and coupled agree to the picosecond with activations in the host's memory") {
  double waited = 0;
  std::size_t configurations = 0;
  for (const ScheduleType& type : schedules()) {
    if (type.chunks == ScheduleType::kAsWritten || type.name.starts_with("dualpipe")) continue;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      step::Configuration configuration = with_schedule(draw_configuration(seed), type);
      configuration.strategy.stack.overlap_experts = false;
      configuration.strategy.offload_modules = seed % 2 == 0 ? kDense : offload::core_attn | offload::mlp_norm;
      configuration.strategy.offload_stages = static_cast<std::int64_t>(seed % 3 == 0);
      configuration.gpu.host_gb_per_s = seed % 2 == 0 ? 20 : 5;
      if (seed % 3 == 1) configuration.strategy.recompute_modules = recompute::mlp_act | recompute::layernorm;
      CAPTURE(type.name, seed);
      const auto composed = run_configuration(configuration, step::Composition::composed);
      const auto coupled = run_configuration(configuration, step::Composition::coupled);
      REQUIRE(composed.step_ps == coupled.step_ps);
      REQUIRE(composed.breakdown[StepPart::exposed_offload] == coupled.breakdown[StepPart::exposed_offload]);
      waited += composed.breakdown[StepPart::exposed_offload];
      ++configurations;
    }
  }
  CHECK(configurations >= 60);
  CHECK(waited > 0);
}
