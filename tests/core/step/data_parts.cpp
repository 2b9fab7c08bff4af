// Parts of one model under strategies of their own: tensor-parallel ranks share some out by samples, others by weights.
#include <catch2/catch.hpp>

#include <algorithm>

#include "core/step/estimate/lower_bound.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using workload::Operator;
using workload::OpList;

namespace {

constexpr workload::Modules kAttention = workload::data_part::attention,
                            kFeedForward = workload::data_part::feed_forward;

/// Strategy `sharded` of tp 4 with micro-batches of 4, and the same with parts by samples.
workload::Strategy by_samples(workload::Modules parts) {
  workload::Strategy result;
  result.tp = 4;
  result.sequence_parallel = true;
  result.micro_batch = result.global_batch = 4;
  result.data_parts = parts;
  return result;
}

std::int64_t flops_of(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const OpList* ops : {&each.forward, &each.backward})
      for (const workload::WorkItem& work : *ops)
        if (work.kernel() != nullptr) sum += work.kernel()->shape.flops;
  return sum;
}

std::int64_t collectives_of(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const OpList* ops : {&each.forward, &each.backward})
      sum += std::count_if(ops->begin(), ops->end(), [](const auto& work) { return work.start() != nullptr; });
  return sum;
}

std::vector<Operator> layer_of(const workload::Strategy& strategy) {
  return workload::layer_operators(tiny_model(), strategy, {});
}

/// A drawn configuration whose tensor-parallel ranks share out parts by samples, or nothing.
std::optional<step::Configuration> draw_parts(std::uint64_t seed) {
  step::Configuration result = draw_configuration(seed);
  workload::Strategy& s = result.strategy;
  if (s.tp == 1) return std::nullopt;
  s.sequence_parallel = true;
  if (seed % 4 == 0) result = with_context_and_experts(result, seed);
  if (seed % 3 == 0) result = with_overlaps(result, seed);
  s.stack.overlap_experts = false;
  s.data_parts = static_cast<workload::Modules>(1 + seed % 3);
  s.micro_batch *= s.tp;
  s.global_batch *= s.tp;
  return result;
}

}  // namespace

TEST_CASE("parts by samples: ranks together compute what they compute of sharded weights, without collectives") {
  const std::int64_t flops = flops_of(layer_of(by_samples(0)));
  const std::int64_t collectives = collectives_of(layer_of(by_samples(0)));
  for (const workload::Modules parts : {kAttention, kFeedForward, kAttention | kFeedForward}) {
    CAPTURE(parts);
    CHECK(flops_of(layer_of(by_samples(parts))) == flops);
    // Each of the two parts has as many: a gather and a scatter in each direction, and a gather for weight gradients.
    CHECK(collectives_of(layer_of(by_samples(parts))) == (parts == (kAttention | kFeedForward) ? 0 : collectives / 2));
  }
}

TEST_CASE("parts by samples: every tensor-parallel rank has their weights, and sums their gradients with the others") {
  const workload::Model model = tiny_model();
  const std::int64_t h = model.hidden;
  // Matrices and biases that are sharded: QKV and output; both of the feed-forward network. Biases of outputs are not.
  const std::int64_t attention = 4 * h * h + 3 * h, feed_forward = 8 * h * h + 4 * h;
  const auto held = [&](workload::Modules parts) {
    return workload::layer_parameters(model, by_samples(parts), {}).dense;
  };
  const auto summed = [&](workload::Modules parts) {
    return workload::replicated_layer_parameters(model, by_samples(parts), {});
  };
  CHECK(held(kAttention) - held(0) == attention - attention / 4);
  CHECK(held(kFeedForward) - held(0) == feed_forward - feed_forward / 4);
  CHECK(held(kAttention | kFeedForward) - held(0) == (attention + feed_forward) * 3 / 4);
  CHECK(summed(kAttention) - summed(0) == attention);
  CHECK(summed(kFeedForward) - summed(0) == feed_forward);
}

TEST_CASE("parts by samples: what a rank saves of them is a replica's share") {
  for (const workload::Modules part : {kAttention, kFeedForward}) {
    std::int64_t sharded = 0, whole = 0;
    for (const Operator& each : layer_of(by_samples(0))) sharded += each.saved_bytes;
    workload::Strategy replica;  // one of four, with one sample each
    replica.dp = 4;
    replica.global_batch = 4;
    for (const Operator& each : workload::layer_operators(tiny_model(), replica, {})) whole += each.saved_bytes;
    std::int64_t saved = 0;
    for (const Operator& each : layer_of(by_samples(kAttention | kFeedForward))) saved += each.saved_bytes;
    CHECK(saved == whole);
    std::int64_t mixed = 0;
    for (const Operator& each : layer_of(by_samples(part))) mixed += each.saved_bytes;
    CHECK(mixed >= std::min(sharded, whole));
    CHECK(mixed <= std::max(sharded, whole));
  }
}

TEST_CASE("parts by samples: composed and coupled agree to the picosecond on drawn configurations") {
  std::size_t drawn = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const auto configuration = draw_parts(seed);
    if (!configuration) continue;
    require_same_packets(run_configuration(*configuration, step::Composition::composed),
                         run_configuration(*configuration, step::Composition::coupled));
    ++drawn;
  }
  CHECK(drawn > 25);
}

TEST_CASE("parts by samples: the lower bound is below drawn steps") {
  std::size_t drawn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    auto configuration = draw_parts(seed);
    if (!configuration) continue;
    configuration->transport.fidelity = network::Fidelity::analytic;
    const Time bound = step::lower_bound_ps(*configuration);
    REQUIRE(bound > 0);
    REQUIRE(bound <= run_configuration(*configuration, step::Composition::composed).step_ps);
    ++drawn;
  }
  CHECK(drawn > 80);
}
