// Steps with frozen weights and pairs of low rank: what holds of every step.
#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/estimate/volumes.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "tests/core/step/drawn_steps.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration with frozen weights and pairs of low rank beside some of them.
step::Configuration draw_tuned(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  if (seed % 2 == 0 && s.stack.overlap_tensor) s.stack.tensor_chunks = 2;
  if (s.replicas() > 1 && seed % 3 == 0) s.zero = 1 + static_cast<std::int64_t>(seed % 4) % 3;
  result.model.lora_rank = 16;
  result.model.lora_weights = static_cast<workload::Modules>(seed % 16);
  result.model.dropout = seed % 5 == 0;
  return result;
}

}  // namespace

TEST_CASE("fine-tuning: composed and coupled agree to the picosecond on drawn configurations") {
  require_composed_as_coupled(40, draw_tuned);
}

TEST_CASE("fine-tuning: bounds are below drawn steps") {
  require_bounds_below(150, draw_tuned);
}

TEST_CASE("fine-tuning: a rank holds frozen weights in 16 bits, and gradients and optimizer of the trained ones") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_tuned(seed);
    const workload::Strategy& s = configuration.strategy;
    const auto bytes = memory::static_footprint(configuration.model, s, configuration.gpu, workload::RankClass{0});
    const auto shard = [&](std::int64_t count, std::int64_t from) {
      return s.zero >= from ? (count + s.shards() - 1) / s.shards() : count;
    };
    const std::int64_t trained = workload::trained_stage_parameters(configuration.model, s, 0).total();
    step::Configuration plain = configuration;
    plain.model.lora_rank = 0, plain.model.lora_weights = 0;
    const bool narrow = s.stack.reduce_in_16bit || s.stack.precision == workload::Precision::fp16;
    CHECK(bytes.gradients == (narrow ? 2 : 4) * shard(trained, 2));
    CHECK(bytes.optimizer == (narrow ? 16 : 12) * shard(trained, 1));
    if (s.zero < 3)
      CHECK(bytes.weights ==
            2 * trained + memory::static_footprint(plain.model, s, plain.gpu, workload::RankClass{0}).weights);
  }
}
