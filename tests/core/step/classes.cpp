// Ranks by what they run: which classes a layout has, and that telling ranks apart which run the same changes nothing.
#include <catch2/catch.hpp>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using workload::RankClass;

namespace {

step::RankLayout layout_of(const step::Configuration& configuration, bool expert_ranks_differ) {
  step::ParallelConfig parallel = step::parallel_config_of(configuration);
  parallel.expert_ranks_differ = expert_ranks_differ;
  return {parallel, std::make_shared<network::Router>(configuration.graph, configuration.transport.routing,
                                                      static_cast<std::uint64_t>(configuration.transport.seed))};
}

/// 2 stages of 8 ranks: an expert is cut over 2, 2 of these pairs share all experts, and there are 2 copies of them.
step::Configuration sixteen_ranks() {
  Cluster cluster;
  cluster.nodes = 4;
  step::Configuration configuration = config_of(cluster, 2, 2, 2);
  configuration.model.experts = 8, configuration.model.experts_per_token = 2;
  configuration.strategy.sequence_parallel = true;
  configuration.strategy.ep = 2, configuration.strategy.etp = 2;
  return configuration;
}

}  // namespace

TEST_CASE("where all ranks of a stage are alike each stage is a class, else each expert rank of it is one") {
  const step::Configuration configuration = sixteen_ranks();
  const step::RankLayout alike = layout_of(configuration, false), apart = layout_of(configuration, true);
  CHECK(alike.classes() == std::vector<RankClass>{{0, 0}, {1, 0}});
  CHECK(apart.classes() == std::vector<RankClass>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  for (const step::RankId id : alike.rank_ids()) {
    const std::uint32_t rank = id.value();
    CHECK(alike.class_of(id) == rank / 8);
    CHECK(apart.class_of(id) == rank / 8 * 2 + rank % 8 / 2 % 2);
    CHECK(apart.class_of(id) ==
          apart.stage_of(id) * 2 + apart.member_of(id, workload::Role::expert));  // its place in its expert group
  }
  CHECK(alike.class_size(1) == 8);
  CHECK(apart.class_size(3) == 4);
}

TEST_CASE("a step of ranks that are told apart and run the same is the step of ranks that are not") {
  std::size_t told_apart = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    if (configuration.strategy.ep == 1) continue;
    step::DagCache dags;
    step::SimulationContext context;
    step::IsolatedResults results;
    const auto run = [&](bool differ) {
      const auto layout = std::make_shared<step::RankLayout>(layout_of(configuration, differ));
      const step::CompiledStep compiled(configuration, layout, dags);
      REQUIRE(compiled.programs().size() == layout->classes().size());
      step::StepResult result = context.run(compiled, results);
      result.computed = {};  // the second one remembers
      return encode(result);
    };
    REQUIRE(run(true) == run(false));
    ++told_apart;
  }
  CHECK(told_apart > 10);
}
