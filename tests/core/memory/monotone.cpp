// Of drawn strategies: whatever is made again, or offloaded, in addition takes no memory and saves no time.
#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;
using namespace manyworlds::tests;

namespace {

struct Cost {
  std::int64_t bytes = 0;
  Time recompute = 0, copies = 0;  // of all classes of ranks
};
Cost cost_of(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  Cost cost;
  cost.bytes = memory::peak(model, strategy, gpu).total();
  for (const RankClass& rank_class : rank_classes(model, strategy))
    for (const Op& op : build_program(model, strategy, gpu, rank_class).ops) {
      const KernelOp* kernel = op.kernel();
      if (kernel == nullptr) continue;
      if (op.stream == Stream::offload || op.stream == Stream::reload)
        cost.copies += kernel->duration_ps;
      else if (kernel->category == StepPart::recompute)
        cost.recompute += kernel->duration_ps;
    }
  return cost;
}

/// A drawn configuration, and the modules that mean something there.
struct Drawn {
  step::Configuration configuration;
  Modules recompute = recompute::layernorm | recompute::core_attn, offload = 0;
};
Drawn draw(std::uint64_t seed) {
  const auto& types = schedules();
  Drawn result;
  const ScheduleType& type = types[seed % types.size()];
  result.configuration = draw_configuration(seed);
  // Orders that follow from what passes cost and keep are others when those are.
  if (type.chunks != ScheduleType::kAsWritten && !type.needs_costs)
    result.configuration = with_schedule(result.configuration, type);
  result.configuration = with_context_and_experts(result.configuration, seed);
  result.configuration.strategy.recompute = Recompute::none;
  result.configuration.strategy.stack.overlap_experts = false;
  const Model& model = result.configuration.model;
  if (model.is_latent()) result.recompute |= recompute::mla_up_proj;
  if (model.has_experts()) result.recompute |= recompute::moe_act | recompute::moe;
  if (!model.has_experts() || model.dense_layers > 0) result.recompute |= recompute::mlp_act | recompute::mlp;
  result.offload = (Modules{1} << offload_module_names().size()) - 1;
  return result;
}

}  // namespace

namespace {

/// Of 150 drawn strategies: with three sets of modules, each with the one before in it, and then with fewer places
/// again. How often memory became less, and time more.
struct Moved {
  std::size_t smaller = 0, longer = 0;
};
Moved grow(Modules Drawn::*all, Modules Strategy::*asked, std::int64_t Strategy::*places, Time Cost::*time) {
  Moved moved;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Drawn drawn = draw(seed);
    step::Configuration& configuration = drawn.configuration;
    std::mt19937_64 random(seed);
    Strategy& s = configuration.strategy;
    Cost before = cost_of(configuration.model, s, configuration.gpu);
    CHECK(before.*time == 0);
    for (int more = 0; more < 3; ++more) {
      s.*asked |= static_cast<Modules>(random()) & drawn.*all;
      const Cost after = cost_of(configuration.model, s, configuration.gpu);
      CAPTURE(seed, s.*asked, more);
      REQUIRE(after.bytes <= before.bytes);
      REQUIRE(after.*time >= before.*time);
      if (after.bytes < before.bytes) ++moved.smaller;
      if (after.*time > before.*time) ++moved.longer;
      before = after;
    }
    s.*places = 1;
    const Cost fewer = cost_of(configuration.model, s, configuration.gpu);
    REQUIRE(fewer.bytes >= before.bytes);
    REQUIRE(fewer.*time <= before.*time);
  }
  return moved;
}

}  // namespace

TEST_CASE("more recomputation takes no more memory and no less time, of drawn strategies") {
  const Moved moved =
      grow(&Drawn::recompute, &Strategy::recompute_modules, &Strategy::recompute_stages, &Cost::recompute);
  CHECK(moved.smaller > 100);
  CHECK(moved.longer > 100);
}

TEST_CASE("more offloading takes no more memory and copies no less, of drawn strategies") {
  const Moved moved = grow(&Drawn::offload, &Strategy::offload_modules, &Strategy::offload_layers, &Cost::copies);
  CHECK(moved.smaller > 50);
  CHECK(moved.longer > 100);
}
