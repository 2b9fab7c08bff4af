// Steps with a teacher: what holds of every step.
#include <catch2/catch.hpp>

#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/step_configurations.hpp"
#include "tests/core/workload/distilled_models.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration whose model has a teacher twice as deep or wide.
step::Configuration draw_taught(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  if (s.stack.overlap_tensor && seed % 2 == 0) s.stack.tensor_chunks = 2;
  if (s.replicas() > 1 && seed % 3 == 0) s.zero = 2;
  workload::Model teacher = result.model;
  (seed % 2 == 0 ? teacher.layers : teacher.hidden) *= 2;
  teacher.kv_heads = 4, teacher.position = workload::Position::rotary;
  result.model = workload::taught_by(
      result.model, teacher,
      seed % 5 == 0 ? workload::DistillationLoss::kl_and_cross_entropy : workload::DistillationLoss::kl);
  return result;
}

}  // namespace

TEST_CASE("distillation: composed and coupled agree to the picosecond over tensor, pipeline and data parallel ranks") {
  step::Configuration configuration = config_of({}, 2, 2, 4);
  REQUIRE(configuration.strategy.dp == 2);
  workload::Model teacher = configuration.model;
  teacher.hidden = 1'024, teacher.layers = 8;
  const step::Configuration plain = configuration;
  configuration.model = workload::taught_by(configuration.model, teacher);
  const auto composed = run_configuration(configuration, step::Composition::composed);
  require_same_packets(composed, run_configuration(configuration, step::Composition::coupled));
  CHECK(composed.step_ps > run_configuration(plain, step::Composition::composed).step_ps);
}

TEST_CASE("distillation: composed and coupled agree to the picosecond on drawn configurations") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_taught(seed);
    require_same_packets(run_configuration(configuration, step::Composition::composed),
                         run_configuration(configuration, step::Composition::coupled));
  }
}

TEST_CASE("distillation: bounds are below drawn steps") {
  double tightness = 0;
  constexpr std::uint64_t kDraws = 100;
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_taught(seed);
    configuration.transport.fidelity = network::Fidelity::analytic;
    const Time bound = step::lower_bound_ps(configuration),
               analytic = run_at(configuration, network::Fidelity::analytic).step_ps;
    REQUIRE(bound > 0);
    REQUIRE(bound <= analytic);
    REQUIRE(step::lower_bound_ps(configuration, step::Replicas::open) <= bound);
    tightness += static_cast<double>(bound) / static_cast<double>(analytic);
  }
  CHECK(tightness / kDraws > 0.5);
}
