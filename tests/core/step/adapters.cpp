// Steps with frozen weights in 4 bits, or with norms trained beside pairs of low rank: what holds of every step.
#include <catch2/catch.hpp>

#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/drawn_steps.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration with pairs of low rank, and norms or, on ranks that have whole weights, 4 bits.
step::Configuration draw_adapted(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  if (s.replicas() > 1) s.zero = static_cast<std::int64_t>(seed % 3);
  result.model.lora_rank = 16;
  result.model.dropout = false;
  if (s.tp == 1 && seed % 2 == 0)
    result.model.frozen_weights = workload::WeightFormat::nf4, s.stack.precision = workload::Precision::bf16;
  else
    result.model.lora_magnitudes = true;
  return result;
}

}  // namespace

TEST_CASE("adapters: composed and coupled agree to the picosecond on drawn configurations") {
  require_composed_as_coupled(40, draw_adapted);
}

TEST_CASE("adapters: bounds are below drawn steps") {
  require_bounds_below(150, draw_adapted);
}
