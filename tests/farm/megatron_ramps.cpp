// Ramps of batches as Megatron-LM has them, beside its calculator written plainly, step by step.
#include <catch2/catch.hpp>
#include <cmath>

#include "farm/ramp/critical_law.hpp"
#include "farm/ramp/envelope.hpp"
#include "farm/ramp/measured_batches.hpp"
#include "farm/ramp/megatron_ramp.hpp"

using namespace manyworlds::farm::ramp;

namespace {

constexpr double kSampleTokens = 1'000;

std::vector<Candidate> layout_of(const std::vector<std::int64_t>& batches, double fixed_s, double per_sample_s,
                                 std::uint32_t layout = 0) {
  std::vector<Candidate> all;
  for (const std::int64_t batch : batches) {
    const auto samples = static_cast<double>(batch);
    all.push_back({batch, batch, samples * kSampleTokens, fixed_s + per_sample_s * samples, layout});
  }
  return all;
}

/// RampupBatchsizeNumMicroBatchesCalculator.update(): the batch after so many consumed samples.
std::int64_t batch_after(double consumed, std::int64_t start, std::int64_t increment, double samples,
                         std::int64_t last) {
  if (consumed > samples) return last;
  const double per_increment = samples / static_cast<double>((last - start) / increment);
  return start + static_cast<std::int64_t>(consumed / per_increment) * increment;
}

/// The time of whole steps up to `end`, of the last one the share that is needed.
double stepwise_s(const CriticalBatch& critical, const std::vector<Candidate>& candidates, const MegatronRamp& ramp,
                  double end) {
  double consumed = 0, from = 0, time_s = 0;
  while (true) {
    const std::int64_t batch =
        batch_after(consumed, ramp.start, ramp.increment, static_cast<double>(ramp.samples), ramp.last);
    for (const Candidate& one : candidates) {
      if (one.batch != batch) continue;
      const double to = critical.steps_after(from, one.tokens, one.tokens);
      if (to >= end) return time_s + one.step_s * (end - from) / (to - from);
      time_s += one.step_s, consumed += static_cast<double>(batch), from = to;
    }
  }
}

}  // namespace

TEST_CASE("a ramp of Megatron-LM takes the time that its calculator takes step by step, but for a step each batch") {
  // Two neighbours are equally fast at 0.02/0.3 of their product: every 10 M tokens here.
  const MeasuredBatches critical({{0, 1e3}, {1e7, 8'533}, {2e7, 25'600}, {3e7, 51'200}, {4e7, 85'333}, {8e7, 3e5}});
  const std::vector<Candidate> candidates = layout_of({8, 16, 24, 32, 40}, 0.3, 0.02);
  const double end = critical.steps_after(0, 8e3, 9e7);
  const auto ramp = best_megatron_ramp(critical, candidates, kSampleTokens, end);
  REQUIRE(ramp);
  CHECK((ramp->start == 8 && ramp->increment == 8 && ramp->last == 40));
  CHECK(ramp->schedule.phases.size() == 5);
  const double plain_s = stepwise_s(critical, candidates, *ramp, end);
  CHECK(ramp->schedule.time_s == Approx(plain_s).margin(5 * 1.1).epsilon(0));
  CHECK(ramp->schedule.time_s == Approx(plain_s).epsilon(2e-3));
}

TEST_CASE("no ramp of Megatron-LM that was tried plainly is faster than the best one") {
  const CriticalLaw law({}, 1e5, 1e5);
  const std::vector<Candidate> candidates = layout_of({8, 16, 24, 32}, 0.3, 0.02);
  const double end = law.steps_at(3e4);
  const auto best = best_megatron_ramp(law, candidates, kSampleTokens, end);
  REQUIRE(best);
  for (const auto& [start, increment, last] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{8, 8, 16},
                                                                         {8, 8, 24},
                                                                         {8, 8, 32},
                                                                         {8, 16, 24},
                                                                         {8, 24, 32},
                                                                         {16, 8, 24},
                                                                         {16, 8, 32},
                                                                         {16, 16, 32},
                                                                         {24, 8, 32}})
    for (double samples = 1; samples < 1e6; samples *= 1.15) {
      const MegatronRamp ramp{start, increment, static_cast<std::int64_t>(samples), last, {}};
      // Batches that change at the end of a step can come out a few steps ahead.
      CHECK(stepwise_s(law, candidates, ramp, end) > best->schedule.time_s - 3);
    }
}

TEST_CASE("a ramp of one increment changes where the two batches are equally fast") {
  const CriticalLaw law({}, 1e8, 1e6);
  const std::vector<Candidate> candidates = layout_of({16, 48}, 0.3, 0.02);
  const double end = 2e5;
  const auto ramp = best_megatron_ramp(law, candidates, kSampleTokens, end);
  REQUIRE(ramp);
  CHECK((ramp->start == 16 && ramp->increment == 32 && ramp->last == 48));
  CHECK(ramp->schedule.time_s == Approx(best_schedule(law, candidates, end, 0, "").time_s).epsilon(1e-9));
  const double change = law.steps_at(crossing(candidates[0], candidates[1]));
  CHECK(static_cast<double>(ramp->samples) * kSampleTokens ==
        Approx(law.tokens(change) + 16 * kSampleTokens * change).epsilon(1e-3));
}

TEST_CASE("ramps of Megatron-LM keep one layout, and need two batches of it") {
  const CriticalLaw law({}, 1e8, 1e6);
  std::vector<Candidate> candidates = layout_of({16}, 0.3, 0.02);
  const std::vector<Candidate> other = layout_of({32}, 0.3, 0.02, 1);
  candidates.insert(candidates.end(), other.begin(), other.end());
  CHECK_FALSE(best_megatron_ramp(law, candidates, kSampleTokens, 1e5));
  // Of two layouts with the same batches the faster one is taken.
  const std::vector<Candidate> slow = layout_of({16, 32}, 0.4, 0.02, 2), fast = layout_of({16, 32}, 0.35, 0.02, 3);
  candidates = slow;
  candidates.insert(candidates.end(), fast.begin(), fast.end());
  const auto ramp = best_megatron_ramp(law, candidates, kSampleTokens, 1e5);
  REQUIRE(ramp);
  for (const Phase& phase : ramp->schedule.phases) CHECK(candidates[phase.candidate].layout == 3);
}

TEST_CASE("a ramp that gains nothing on a fixed batch is none") {
  // Steps of one time train fastest with the largest batch, whatever the critical batch is.
  const CriticalLaw law({}, 1e8, 1e6);
  CHECK_FALSE(best_megatron_ramp(law, layout_of({16, 32, 48}, 0.3, 0), kSampleTokens, 1e5));
  // Steps in proportion to the batch train fastest with the smallest.
  CHECK_FALSE(best_megatron_ramp(law, layout_of({16, 32, 48}, 0, 0.3), kSampleTokens, 1e5));
}
