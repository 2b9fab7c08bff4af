// Composed steps against coupled ones, to the picosecond.
#include <catch2/catch.hpp>

#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

void require_same(const step::StepResult& a, const step::StepResult& b) {
  REQUIRE(a.step_ps == b.step_ps);
  REQUIRE(a.ecn_marks == b.ecn_marks);
  REQUIRE(a.pauses == b.pauses);
  REQUIRE(a.link_hops == b.link_hops);
  REQUIRE(a.breakdown[workload::StepPart::exposed_tp] == b.breakdown[workload::StepPart::exposed_tp]);
  REQUIRE(a.breakdown[workload::StepPart::exposed_dp] == b.breakdown[workload::StepPart::exposed_dp]);
  REQUIRE(a.breakdown[workload::StepPart::exposed_pp] == b.breakdown[workload::StepPart::exposed_pp]);
  REQUIRE(a.breakdown[workload::StepPart::bubble] == b.breakdown[workload::StepPart::bubble]);
  REQUIRE(a.breakdown[workload::StepPart::stall] == b.breakdown[workload::StepPart::stall]);
}

}  // namespace

TEST_CASE("composed and coupled agree to the picosecond on 100 drawn configurations") {
  std::size_t episodes = 0;
  std::int64_t marks = 0, pauses = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same(composed, run_configuration(configuration, step::Composition::coupled));
    episodes += composed.episodes.size();
    marks += composed.ecn_marks;
    pauses += composed.pauses;
  }
  CHECK(episodes > 100);  // the draws do overlap traffic, mark and pause
  CHECK(marks > 0);
  CHECK(pauses > 0);
}

TEST_CASE("composed and coupled agree to the picosecond where gradients and parameters are sharded") {
  std::size_t configurations = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    workload::Strategy& s = configuration.strategy;
    if (s.dp == 1) continue;
    s.zero = 1 + static_cast<std::int64_t>(seed % 3);
    s.stack.overlap_parameters = s.zero < 3 && seed % 2 == 0;
    s.stack.reduce_in_16bit = seed % 5 == 0;
    require_same(run_configuration(configuration, step::Composition::composed),
                 run_configuration(configuration, step::Composition::coupled));
    ++configurations;
  }
  CHECK(configurations > 30);
}

TEST_CASE("composed and coupled agree to the picosecond with context parallelism, experts and latent attention") {
  std::size_t contexts = 0, experts = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    require_same(composed, coupled);
    REQUIRE(composed.breakdown[workload::StepPart::exposed_cp] == coupled.breakdown[workload::StepPart::exposed_cp]);
    REQUIRE(composed.breakdown[workload::StepPart::exposed_ep] == coupled.breakdown[workload::StepPart::exposed_ep]);
    contexts += composed.breakdown[workload::StepPart::exposed_cp] > 0;
    experts += composed.breakdown[workload::StepPart::exposed_ep] > 0;
  }
  CHECK(contexts > 10);
  CHECK(experts > 10);
}

TEST_CASE("composed and coupled agree to the picosecond with other overlaps, exchanges and engines") {
  std::size_t contexts = 0, chunks = 0, slowed = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration =
        with_overlaps(with_context_and_experts(draw_configuration(seed), seed), seed);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    require_same(composed, coupled);
    REQUIRE(composed.breakdown[workload::StepPart::exposed_cp] == coupled.breakdown[workload::StepPart::exposed_cp]);
    REQUIRE(composed.breakdown[workload::StepPart::slowed] == coupled.breakdown[workload::StepPart::slowed]);
    contexts += composed.breakdown[workload::StepPart::exposed_cp] > 0;
    REQUIRE(composed.breakdown[workload::StepPart::exposed_ep] == coupled.breakdown[workload::StepPart::exposed_ep]);
    chunks += configuration.strategy.stack.tensor_chunks > 1;
    shared += configuration.strategy.stack.overlap_shared_expert;
    slowed += composed.breakdown[workload::StepPart::slowed] > 0;
  }
  CHECK(contexts > 10);
  CHECK(chunks > 20);
  CHECK(shared > 5);
  CHECK(slowed > 20);
}

TEST_CASE("composed and coupled agree to the picosecond where nodes are meshes, and bounds are below them") {
  std::size_t faster = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    if (configuration.gpus_per_node < 4) continue;
    Cluster cluster;
    cluster.mesh = true;
    cluster.gpus_per_node = static_cast<std::uint32_t>(configuration.gpus_per_node);
    cluster.nodes = configuration.graph->gpus / cluster.gpus_per_node;
    cluster.scale_up = 240'000'000'000;
    configuration.graph = graph_of(cluster);
    configuration.collectives.all_reduce =
        seed % 2 == 0 ? collective::Algorithm::ring : collective::Algorithm::automatic;
    configuration.collectives.channels = 0;
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same(composed, run_configuration(configuration, step::Composition::coupled));
    REQUIRE(step::lower_bound_ps(configuration) <= composed.step_ps);
    configuration.collectives.channels = 1;
    faster += composed.step_ps < run_configuration(configuration, step::Composition::composed).step_ps;
  }
  CHECK(faster > 5);  // where collectives take one link at a time, steps take longer
}

TEST_CASE("composed and coupled agree to the picosecond under every schedule") {
  for (const workload::ScheduleType& type : workload::schedules()) {
    if (type.chunks == workload::ScheduleType::kAsWritten) continue;
    double transfers = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      step::Configuration configuration = with_schedule(draw_configuration(seed), type);
      if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
      if (seed % 3 == 1) configuration.strategy.stack.overlap_transfers = false;
      configuration.strategy.stack.post_validation = seed % 4 == 0;
      INFO(type.name << ", seed " << seed);
      const auto composed = run_configuration(configuration, step::Composition::composed);
      require_same(composed, run_configuration(configuration, step::Composition::coupled));
      transfers += composed.breakdown[workload::StepPart::exposed_pp];
    }
    CHECK(transfers > 0);
  }
}

TEST_CASE("composed and coupled agree to the picosecond where the streams' clock ticks") {
  constexpr std::array<std::int64_t, 4> kTicks{1, 7, 200, 5'000};
  std::size_t episodes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
    if (seed % 2 == 0) configuration.gpu.communication_slowdown = 0.3;
    configuration.tick_ns = kTicks[seed % kTicks.size()];
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same(composed, run_configuration(configuration, step::Composition::coupled));
    REQUIRE(composed.step_ps % (configuration.tick_ns * kNanosecond) == 0);
    episodes += composed.episodes.size();
  }
  CHECK(episodes > 60);
}
