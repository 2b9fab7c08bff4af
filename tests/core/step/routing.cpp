// Steps whose experts get unequal loads: ranks of one stage run programs of their own.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/workload/parts/expert_load.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

TEST_CASE("composed and coupled agree to the picosecond where experts get unequal loads") {
  std::size_t apart = 0, exposed = 0, copies = 0, again = 0, dropped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_routed(seed);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    require_same_packets(composed, coupled);
    REQUIRE(composed.breakdown[workload::StepPart::exposed_ep] == coupled.breakdown[workload::StepPart::exposed_ep]);
    REQUIRE(composed.breakdown[workload::StepPart::stall] == coupled.breakdown[workload::StepPart::stall]);
    REQUIRE(composed.breakdown[workload::StepPart::recompute] == coupled.breakdown[workload::StepPart::recompute]);
    const auto account = workload::routing_summary(configuration.model, configuration.strategy);
    apart += workload::expert_ranks_differ(configuration.model, configuration.strategy);
    exposed += composed.breakdown[workload::StepPart::exposed_ep] > 0;
    copies += account.copies > 0;
    dropped += account.drop_rate > 0;
    again += configuration.strategy.recompute == workload::Recompute::none &&
             composed.breakdown[workload::StepPart::recompute] > 0;
  }
  CHECK(apart > 30);
  CHECK(exposed > 30);
  CHECK(copies > 8);
  CHECK(dropped > 10);
  CHECK(again > 1);
}

TEST_CASE("loads that differ give steps of their own names, and sharing does not change what they are") {
  step::SimulationContext context;
  std::size_t configurations = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_routed(seed);
    if (!workload::expert_ranks_differ(configuration.model, configuration.strategy)) continue;
    const auto shared = run_configuration(configuration, step::Composition::composed, true);
    const auto alone = run_configuration(configuration, step::Composition::composed, false);
    REQUIRE(shared.step_ps == alone.step_ps);
    REQUIRE(shared.breakdown[workload::StepPart::stall] == alone.breakdown[workload::StepPart::stall]);

    const auto first = context.summary(configuration);
    const step::CompiledStep result = context.compile(configuration);
    REQUIRE(result.programs().size() ==
            static_cast<std::size_t>(configuration.strategy.pp * configuration.strategy.ep));
    REQUIRE(first.instances == result.instances());
    for (const auto& one : first.collectives)
      REQUIRE(std::any_of(result.collective_ops().begin(), result.collective_ops().end(),
                          [&](const step::CollectiveOp& op) { return op.key == one.key && op.shape == one.shape; }));
    std::set<sharing::Key> keys{first.step};
    step::Configuration other = configuration;
    other.model.routing = workload::zipf_routing(configuration.model.layers, 8, 0.4, 99);
    REQUIRE(keys.insert(context.summary(other).step).second);
    other.model.routing = nullptr;
    REQUIRE(keys.insert(context.summary(other).step).second);
    // The same loads from a table are the same configuration.
    std::vector<std::vector<std::int64_t>> by_layer;
    for (const std::uint32_t load : configuration.model.routing->load_by_layer)
      by_layer.push_back(configuration.model.routing->loads[load]);
    other.model.routing = workload::make_routing(by_layer);
    REQUIRE(context.summary(other).step == first.step);
    ++configurations;
  }
  CHECK(configurations > 10);
}

TEST_CASE("the rank with most tokens is waited for, and a step takes longer than one of balanced experts") {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 4;
  step::Configuration configuration = config_of(cluster, 1, 1, 2);
  configuration.model.experts = 8, configuration.model.experts_per_token = 2;
  configuration.model.sequence = 4'096;
  configuration.strategy.ep = 4;
  const auto balanced = run_configuration(configuration, step::Composition::composed);
  std::vector<std::vector<std::int64_t>> hot(4, std::vector<std::int64_t>(8, 1));
  for (auto& load : hot) load[3] = 100;  // every token visits expert 3, on rank 1
  configuration.model.routing = workload::make_routing(hot);
  const auto uneven = run_configuration(configuration, step::Composition::composed);
  CHECK(uneven.step_ps > balanced.step_ps);
  CHECK(uneven.breakdown[workload::StepPart::stall] + uneven.breakdown[workload::StepPart::exposed_ep] >
        balanced.breakdown[workload::StepPart::stall] + balanced.breakdown[workload::StepPart::exposed_ep]);
  // As many tokens are multiplied in all.
  CHECK(uneven.breakdown[workload::StepPart::forward] ==
        Approx(balanced.breakdown[workload::StepPart::forward]).epsilon(0.1));
}
