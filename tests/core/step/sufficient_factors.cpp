// Steps whose replicas exchange sufficient factors: when that pays, which weights it pays for, and what holds of every
// step.
#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/step/compile/step_summary.hpp"
#include "core/step/estimate/closed_form.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/estimate/volumes.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using workload::GradientExchange;

namespace {

/// One GPU in each of `replicas` nodes behind slow NICs; wide layers, and `tokens` of a replica in a step.
step::Configuration wide_layers(std::uint32_t replicas, std::int64_t hidden, std::int64_t tokens, std::int64_t gbps) {
  Cluster cluster;
  cluster.nodes = replicas;
  cluster.gpus_per_node = 1;
  cluster.rails = false;
  cluster.nic = cluster.uplink = gbps * 1'000'000'000;
  step::Configuration result = config_of(cluster, 1, 1, 1);
  result.model.layers = 2;
  result.model.hidden = hidden;
  result.model.heads = 8;
  result.model.vocabulary = 512;
  result.model.sequence = tokens;
  return result;
}

step::Configuration with(step::Configuration configuration, GradientExchange exchange, workload::Modules weights = 0) {
  configuration.strategy.gradient_exchange = exchange;
  configuration.strategy.factor_weights = weights;
  return configuration;
}

Time analytic_ps(const step::Configuration& configuration) {
  return run_at(configuration, network::Fidelity::analytic).step_ps;
}

/// A drawn configuration that may exchange factors, or nothing.
std::optional<step::Configuration> draw_factors(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  if (s.schedule == workload::schedule_by_name("interleaved")) return std::nullopt;  // of one micro-batch
  s.micro_batch = 1 + static_cast<std::int64_t>(seed % 2);
  s.global_batch = s.dp * s.micro_batch;
  s.zero = 0;
  s.stack.precision = seed % 3 == 0 ? workload::Precision::fp16 : workload::Precision::bf16;
  if (seed % 4 == 0) result = with_context_and_experts(result, seed);
  if (seed % 2 == 0) result = with_overlaps(result, seed);
  s.stack.overlap_experts = false;
  if (result.model.has_experts()) result.model.dense_layers = 2;
  if (s.replicas() == 1) return std::nullopt;
  s.gradient_exchange = seed % 5 == 0 ? GradientExchange::cheapest : GradientExchange::factors;
  if (s.gradient_exchange == GradientExchange::factors) s.factor_weights = static_cast<workload::Modules>(seed % 16);
  s.stack.reduce_in_16bit = seed % 7 == 0;
  return result;
}

}  // namespace

TEST_CASE("factors: cheapest is the assignment of fewest bytes, and within 2 % of the fastest") {
  // 4 in out / (n (in + out)) tokens at most: 224 for the output (h x h), 336 for qkv (h x 3h) and 358 for both others,
  // with h = 448 and four replicas.
  std::size_t mixed = 0;
  for (const std::int64_t tokens : {64, 160, 256, 344, 512})
    for (const std::int64_t gbps : {2, 10}) {
      const step::Configuration sums = wide_layers(4, 448, tokens, gbps);
      Time fastest = kNever;
      double fewest = 1e300;
      workload::Modules fewest_of = 0;
      for (workload::Modules weights = 0; weights < 16; ++weights) {
        const step::Configuration one = weights == 0 ? sums : with(sums, GradientExchange::factors, weights);
        fastest = std::min(fastest, analytic_ps(one));
        const double bytes = step::step_volumes(one.model, one.strategy, 1, {}).replicas.between;
        if (bytes < fewest) fewest = bytes, fewest_of = weights;
      }
      const step::Configuration cheapest = with(sums, GradientExchange::cheapest);
      CAPTURE(tokens, gbps, fewest_of);
      CHECK(step::step_volumes(cheapest.model, cheapest.strategy, 1, {}).replicas.between == fewest);
      const auto chosen = static_cast<double>(analytic_ps(cheapest));
      CHECK(chosen <= 1.02 * static_cast<double>(fastest));
      mixed += fewest_of != 0 && fewest_of != 15;
    }
  CHECK(mixed >= 4);
}

TEST_CASE("factors: in packets they win with few tokens on slow NICs, and lose with many") {
  for (const std::uint32_t replicas : {2u, 4u})
    for (const bool wins : {true, false}) {
      // Bytes of factors over those of sums: n b / (2 h) for h x h, less for wider weights.
      const step::Configuration sums = wide_layers(replicas, 1'024, wins ? 32 : 2'048, 10);
      const step::Configuration factors = with(sums, GradientExchange::factors);
      const auto of_sums = run_configuration(sums, step::Composition::composed);
      const auto of_factors = run_configuration(factors, step::Composition::composed);
      require_same_packets(of_factors, run_configuration(factors, step::Composition::coupled));
      CAPTURE(replicas, wins, of_sums.step_ps, of_factors.step_ps);
      if (wins)
        CHECK(2 * of_factors.step_ps < of_sums.step_ps);
      else
        CHECK(of_factors.step_ps > of_sums.step_ps + of_sums.step_ps / 20);
      // What travels is what the volumes say, but for headers and the embedding's padding.
      const double ratio = step::step_volumes(factors.model, factors.strategy, 1, {}).replicas.between /
                           step::step_volumes(sums.model, sums.strategy, 1, {}).replicas.between;
      CHECK(static_cast<double>(of_factors.link_hops) / static_cast<double>(of_sums.link_hops) ==
            Approx(ratio).epsilon(0.02));
    }
}

TEST_CASE("factors: steps that sum gradients have keys without a word of factors") {
  const step::Configuration sums = wide_layers(2, 512, 64, 10);
  const sharing::Key key = step::operations_key(sums);
  CHECK(step::operations_key(with(sums, GradientExchange::sums, 3)) == key);
  CHECK(step::operations_key(with(sums, GradientExchange::factors)) != key);
  CHECK(step::operations_key(with(sums, GradientExchange::factors, 3)) !=
        step::operations_key(with(sums, GradientExchange::factors)));
}

TEST_CASE("factors: composed and coupled agree to the picosecond on drawn configurations") {
  std::size_t drawn = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const auto configuration = draw_factors(seed);
    if (!configuration) continue;
    require_same_packets(run_configuration(*configuration, step::Composition::composed),
                         run_configuration(*configuration, step::Composition::coupled));
    ++drawn;
  }
  CHECK(drawn > 25);
}

TEST_CASE("factors: the lower bound is below drawn steps") {
  std::size_t drawn = 0;
  double tightness = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    auto configuration = draw_factors(seed);
    if (!configuration) continue;
    configuration->transport.fidelity = network::Fidelity::analytic;
    const Time bound = step::lower_bound_ps(*configuration), analytic = analytic_ps(*configuration);
    REQUIRE(bound > 0);
    REQUIRE(bound <= analytic);
    REQUIRE(step::lower_bound_ps(*configuration, step::Replicas::open) <= bound);
    tightness += static_cast<double>(bound) / static_cast<double>(analytic);
    ++drawn;
  }
  CHECK(drawn > 150);
  CHECK(tightness / static_cast<double>(drawn) > 0.5);
}

TEST_CASE("factors: a bound of open replicas with gradients in 32 bits holds for those in 16") {
  std::size_t fewer = 0;  // weights exchange factors in 16 bits
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    auto configuration = draw_factors(seed);
    if (!configuration) continue;
    workload::Strategy& s = configuration->strategy;
    s.gradient_exchange = GradientExchange::cheapest;
    s.factor_weights = 0;
    s.stack.reduce_in_16bit = false;
    const Time open = step::lower_bound_ps(*configuration, step::Replicas::open);
    const auto gathered = [&] {
      return memory::static_footprint(configuration->model, s, configuration->gpu, workload::RankClass{0}).gathered;
    };
    const std::int64_t wide = gathered();
    s.stack.reduce_in_16bit = true;
    REQUIRE(open <= step::lower_bound_ps(*configuration));
    fewer += gathered() < wide;
  }
  CHECK(fewer > 10);
}

TEST_CASE("factors: the closed form has their gathers and kernels") {
  for (const std::int64_t tokens : {32, 256}) {
    step::Configuration configuration = with(wide_layers(4, 1'024, tokens, 10), GradientExchange::factors);
    configuration.strategy.overlap_grad_reduce = false;
    const step::ClosedForm form =
        step::closed_form(configuration, {{1'600'000'000'000, 600'000}, {10'000'000'000, 3'200'000}});
    CHECK(form.step_s == Approx(seconds(analytic_ps(configuration))).epsilon(0.1));
  }
}
