// Steps with a teacher: what holds of every step.
#include <catch2/catch.hpp>

#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/drawn_steps.hpp"
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
  require_composed_as_coupled(30, draw_taught);
}

TEST_CASE("distillation: bounds are below drawn steps") {
  require_bounds_below(100, draw_taught);
}
