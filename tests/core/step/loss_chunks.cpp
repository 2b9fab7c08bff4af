// Steps whose loss is in chunks: what holds of every step.
#include <catch2/catch.hpp>

#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/drawn_steps.hpp"

using namespace manyworlds::tests;

namespace {

/// A drawn configuration with a loss in 2, 4 or 8 chunks, a third of them of fine-tuning.
step::Configuration draw_chunked(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  s.stack.loss_chunks = std::int64_t{2} << seed % 3;
  s.stack.cross_entropy_fusion = seed % 4 != 0;
  s.stack.gradient_accumulation_fusion = seed % 5 != 0;
  s.stack.sequence_first = seed % 6 != 0;
  if (s.replicas() > 1 && seed % 3 == 0) s.zero = 1 + static_cast<std::int64_t>(seed % 4) % 3;
  if (seed % 3 == 1) result.model.lora_rank = 16;
  return result;
}

}  // namespace

TEST_CASE("losses in chunks: composed and coupled agree to the picosecond on drawn configurations") {
  require_composed_as_coupled(40, draw_chunked);
}

TEST_CASE("losses in chunks: bounds are below drawn steps") {
  require_bounds_below(150, draw_chunked);
}
